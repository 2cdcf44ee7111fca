#include "bench/timing.h"

#include <algorithm>
#include <chrono>

namespace quatrain::bench {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double measured(const std::function<void()>& call, int64_t times, const std::function<void()>& first) {
  if (times > 1) call();
  if (first) first();
  const auto before = Clock::now();
  for (int64_t i = 0; i < times; ++i) call();
  return seconds_since(before) / static_cast<double>(times);
}

Timing summary(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<size_t>(share * static_cast<double>(times.size() - 1) + 0.5)];
  };
  return {at(0.5), at(0.25), at(0.75)};
}

}  // namespace

std::vector<Timing> interleaved(const std::vector<std::function<void()>>& candidates,
                                const TimingOptions& options) {
  for (int64_t i = 0; i + 1 < options.warmup; ++i)
    for (const auto& call : candidates) call();
  std::vector<int64_t> repeats;
  for (const auto& call : candidates) {
    const double once = measured(call, 1, options.before);
    repeats.push_back(
        options.before
            ? 1
            : std::clamp<int64_t>(static_cast<int64_t>(options.turn / std::max(once, 1e-9)), 1, 1000));
  }
  std::vector<std::vector<double>> times(candidates.size());
  const auto start = Clock::now();
  for (int64_t round = 0; round < options.rounds; ++round) {
    if (round >= options.least && seconds_since(start) > options.seconds) break;
    options.between();
    for (size_t i = 0; i < candidates.size(); ++i) {
      const size_t turn = (i + static_cast<size_t>(round)) % candidates.size();
      times[turn].push_back(measured(candidates[turn], repeats[turn], options.before));
    }
  }
  std::vector<Timing> timings;
  for (auto& list : times) timings.push_back(summary(list));
  return timings;
}

}  // namespace quatrain::bench
