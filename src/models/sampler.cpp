#include "models/sampler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "nn/check.h"

namespace quatrain::models {
namespace {

constexpr double kLeast = -std::numeric_limits<double>::infinity();
constexpr int64_t kFirstSorted = 64;  // as many as mostly suffice

}  // namespace

void check_sampling(const SamplingOptions& options, const char* function) {
  nn::require(options.temperature >= 0, function, ": temperature must be at least 0, got ",
              options.temperature);
  nn::require(options.top_k >= 0, function, ": top_k must be at least 0, got ", options.top_k);
  nn::require(options.top_p > 0 && options.top_p <= 1, function,
              ": top_p must be above 0 and at most 1, got ", options.top_p);
}

double Sampler::weight(double score) const {
  return std::exp((score - best_) / options_.temperature);
}

bool Sampler::sort_more(std::span<const double> scores, int64_t most) {
  const auto better = [&](int64_t a, int64_t b) {
    const double of_a = scores[static_cast<size_t>(a)], of_b = scores[static_cast<size_t>(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  };
  const int64_t sorted = std::ssize(sums_), left = std::ssize(order_) - sorted;
  if (left == 0) return false;
  const auto first = order_.begin() + sorted, end = first + std::min(left, most);
  if (end != order_.end()) std::nth_element(first, end, order_.end(), better);
  std::sort(first, end, better);
  double sum = sums_.empty() ? 0 : sums_.back();
  for (auto token = first; token != end; ++token)
    sums_.push_back(sum += weight(scores[static_cast<size_t>(*token)]));
  return true;
}

int64_t Sampler::operator()(std::span<const double> scores, double draw) {
  for (const double score : scores)
    if (std::isnan(score) || score == -kLeast) return -1;
  const auto found = std::max_element(scores.begin(), scores.end());
  if (found == scores.end() || *found == kLeast) return -1;
  if (options_.temperature == 0) return found - scores.begin();
  best_ = *found;
  order_.resize(scores.size());
  std::iota(order_.begin(), order_.end(), 0);
  sums_.clear();
  sums_.reserve(order_.size());
  double total = 0;
  if (options_.top_k > 0 && options_.top_k < std::ssize(order_)) {
    sort_more(scores, options_.top_k);
    order_.resize(sums_.size());
    total = sums_.back();
  } else {
    for (const double score : scores) total += weight(score);
  }
  // The first token whose sum is `enough`; where none is, by the rounding of the total, the last with a
  // weight.
  const auto first = [&](const auto& enough) {
    while (sums_.empty() || !enough(sums_.back()))
      if (!sort_more(scores, std::max(kFirstSorted, 3 * std::ssize(sums_)))) break;
    const auto place = std::partition_point(sums_.begin(), sums_.end(), std::not_fn(enough));
    return place != sums_.end() ? place : std::lower_bound(sums_.begin(), sums_.end(), sums_.back());
  };
  if (options_.top_p < 1)
    total = *first([limit = options_.top_p * total](double sum) { return sum >= limit; });
  const auto chosen = first([limit = draw * total](double sum) { return sum > limit; });
  return order_[static_cast<size_t>(chosen - sums_.begin())];
}

int64_t sample(const std::vector<double>& scores, const SamplingOptions& options, double draw) {
  check_sampling(options, "sample");
  return Sampler(options)(scores, draw);
}

}  // namespace quatrain::models
