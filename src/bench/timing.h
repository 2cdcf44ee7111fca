#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace quatrain::bench {

/// When to stop measuring: after `seconds` in all, or `rounds`, whichever comes first, but not before `least`
/// rounds.
struct TimingOptions {
  double seconds = 2;
  int64_t rounds = 2000;
  int64_t least = 5;
  int64_t warmup = 3;
  /// A short call is repeated until a turn takes about this long, after one call that is not counted: so it
  /// finds the caches as it leaves them, and the clock's grain does not matter. 0: one call a turn.
  double turn = 0;
  /// Called before each call, outside the time; then each call is a turn.
  std::function<void()> before{};
  /// Called before each round; what it throws ends the measuring.
  std::function<void()> between = [] {};
};

/// Seconds of a call: the median over the rounds, and their quartiles.
struct Timing {
  double median = 0, low = 0, high = 0;
  /// The quartiles' distance as a share of the median.
  double spread() const { return median > 0 ? (high - low) / median : 0; }
};

/// Times of each candidate. They take turns in one process, each beginning a round equally often, so that
/// whatever else the machine does meets them alike.
std::vector<Timing> interleaved(const std::vector<std::function<void()>>& candidates,
                                const TimingOptions& options = {});

}  // namespace quatrain::bench
