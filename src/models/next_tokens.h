#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace quatrain::models {

/// The likeliest tokens after each of several hypotheses, by a model's scores.
class NextTokens {
 public:
  /// What is found and what that takes, kept from step to step so that the next one takes no memory.
  struct Buffers {
    template <class T>
    struct Scratch {
      std::vector<T> tops, hidden;
    };
    std::vector<double> total, best;
    std::vector<int64_t> tokens;
    std::vector<Scratch<float>> floats;  ///< of each thread
    std::vector<Scratch<double>> doubles;
  };

  /// logits (rows, vocabulary): the scores, of any type and device. `most`: how many tokens are found for a
  /// row. `banned`: of each row the tokens that are not among them.
  NextTokens(const at::Tensor& logits, int64_t most, const std::vector<std::vector<int64_t>>& banned,
             Buffers& buffers);

  /// Whether a row's scores are finite. Nothing else is said of those of a row where they are not.
  bool is_finite(int64_t row) const { return std::isfinite(total(row)); }
  int64_t count() const { return count_; }  ///< found for each row: `most`, or the whole vocabulary
  /// Number i of a row, the likeliest first, equal ones by their token: a banned one's log-probability is
  /// minus infinity.
  int64_t token(int64_t row, int64_t i) const {
    return buffers_.tokens[static_cast<size_t>(row * count_ + i)];
  }
  double log_probability(int64_t row, int64_t i) const {
    return buffers_.best[static_cast<size_t>(row * count_ + i)] - total(row);
  }
  /// The log-probability of any token, a banned one too.
  double log_probability_of(int64_t row, int64_t token) const;

 private:
  template <class T>
  void find(T* logits, const std::vector<std::vector<int64_t>>& banned,
            std::vector<Buffers::Scratch<T>>& scratch);
  // The logarithm of the sum of a row's exponentials.
  double total(int64_t row) const { return buffers_.total[static_cast<size_t>(row)]; }

  at::Tensor logits_;  // (rows, vocabulary) float or double
  int64_t count_;
  Buffers& buffers_;
};

}  // namespace quatrain::models
