#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quatrain/models/generate.h"

namespace quatrain::models {

/// Throws where a sampling option is out of range; `function` is the caller's name.
void check_sampling(const SamplingOptions& options, const char* function);

/// sample() again and again: after its first call it takes no more memory for as many scores.
class QUATRAIN_API Sampler {
 public:
  explicit Sampler(const SamplingOptions& options) : options_(options) {}
  int64_t operator()(std::span<const double> scores, double draw);

 private:
  double weight(double score) const;
  // Puts up to `most` more of the best tokens in their order, and adds their weights up. False: all are.
  bool sort_more(std::span<const double> scores, int64_t most);

  SamplingOptions options_;
  double best_ = 0;             // of the scores
  std::vector<int64_t> order_;  // tokens, of which the first sums_.size() are the best, the best first
  std::vector<double> sums_;    // of their weights
};

}  // namespace quatrain::models
