#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace quatrain::cli {

/// When to stop measuring: after `seconds` in all, or `rounds`, whichever comes first, but not before `least`
/// rounds.
struct TimingOptions {
  double seconds = 2;
  int64_t rounds = 2000;
  int64_t least = 5;
  int64_t warmup = 3;
};

/// Median seconds of a call of each candidate. They take turns in one process, each beginning a round equally
/// often, so that whatever else the machine does meets them alike.
std::vector<double> interleaved_medians(const std::vector<std::function<void()>>& candidates,
                                        const TimingOptions& options = {});

}  // namespace quatrain::cli
