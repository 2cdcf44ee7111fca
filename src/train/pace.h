#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace quatrain::train {

/// How fast a run goes, and the loss that is shown.
class Pace {
 public:
  void note(double loss, int64_t examples, double seconds);

  double examples_per_second() const;                   ///< over the latest steps, 1,000 at most
  double step_seconds_median() const;                   ///< over the same; 0 where there is none
  std::optional<double> loss() const { return loss_; }  ///< a moving average; none before a step

 private:
  std::deque<double> seconds_;
  std::deque<int64_t> examples_;
  std::optional<double> loss_;
};

}  // namespace quatrain::train
