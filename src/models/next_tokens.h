#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace quatrain::models {

/// The likeliest tokens after each of several hypotheses, by a model's scores.
class NextTokens {
 public:
  /// logits (rows, vocabulary): the scores, of any type and device. `most`: how many tokens are found for a
  /// row. `banned`: of each row the tokens that are not among them.
  NextTokens(const at::Tensor& logits, int64_t most, const std::vector<std::vector<int64_t>>& banned);

  /// Whether a row's scores are finite. Nothing else is said of those of a row where they are not.
  bool is_finite(int64_t row) const { return std::isfinite(total_.const_data_ptr<double>()[row]); }
  int64_t count() const { return best_.size(1); }  ///< found for each row: `most`, or the whole vocabulary
  /// Number i of a row, the likeliest first, equal ones by their token: a banned one's log-probability is
  /// minus infinity.
  int64_t token(int64_t row, int64_t i) const { return tokens_.const_data_ptr<int64_t>()[row * count() + i]; }
  double log_probability(int64_t row, int64_t i) const {
    return best_.const_data_ptr<double>()[row * count() + i] - total_.const_data_ptr<double>()[row];
  }
  /// The log-probability of any token, a banned one too.
  double log_probability_of(int64_t row, int64_t token) const;

 private:
  template <class T>
  void find(T* logits, const std::vector<std::vector<int64_t>>& banned);

  at::Tensor logits_;         // (rows, vocabulary) float or double
  at::Tensor total_;          // (rows) double: the logarithm of the sum of the scores' exponentials
  at::Tensor best_, tokens_;  // (rows, most) double and int64
};

}  // namespace quatrain::models
