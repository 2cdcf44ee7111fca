#include "cli/timing.h"

#include <algorithm>
#include <chrono>

#include "cli/stop.h"

namespace quatrain::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

std::vector<double> interleaved_medians(const std::vector<std::function<void()>>& candidates,
                                        const TimingOptions& options) {
  for (int64_t i = 0; i < options.warmup; ++i)
    for (const auto& call : candidates) call();
  std::vector<std::vector<double>> times(candidates.size());
  const auto start = Clock::now();
  for (int64_t round = 0; round < options.rounds; ++round) {
    if (round >= options.least && seconds_since(start) > options.seconds) break;
    throw_if_stopped();
    for (size_t i = 0; i < candidates.size(); ++i) {
      const size_t turn = (i + static_cast<size_t>(round)) % candidates.size();
      const auto before = Clock::now();
      candidates[turn]();
      times[turn].push_back(seconds_since(before));
    }
  }
  std::vector<double> medians;
  for (auto& list : times) {
    std::nth_element(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(list.size() / 2), list.end());
    medians.push_back(list[list.size() / 2]);
  }
  return medians;
}

}  // namespace quatrain::cli
