#include "train/pace.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace quatrain::train {
namespace {

constexpr size_t kSteps = 1000;
constexpr double kSmoothing = 0.95;

}  // namespace

void Pace::note(double loss, int64_t examples, double seconds) {
  loss_ = loss_ ? kSmoothing * *loss_ + (1 - kSmoothing) * loss : loss;
  seconds_.push_back(seconds);
  examples_.push_back(examples);
  if (seconds_.size() <= kSteps) return;
  seconds_.pop_front();
  examples_.pop_front();
}

double Pace::examples_per_second() const {
  const double seconds = std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
  const auto examples = std::accumulate(examples_.begin(), examples_.end(), int64_t{0});
  return seconds > 0 ? static_cast<double>(examples) / seconds : 0;
}

double Pace::step_seconds_median() const {
  std::vector<double> sorted(seconds_.begin(), seconds_.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? 0 : sorted[sorted.size() / 2];
}

}  // namespace quatrain::train
