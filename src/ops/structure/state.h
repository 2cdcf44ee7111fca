#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "ops/structure/structure.h"

namespace quatrain::ops::structure {

inline constexpr int64_t kLargest = 8;  // n whose factors are followed
inline constexpr int64_t kShortestWait = 4,
                         kLongestWait = 64;  // steps on H before the next search; doubled each time

/// One learned tensor's factors of A / |A|, where it stands, and what happened.
struct State {
  std::mutex mutex;              // of all below; never held while factors are moved or sought
  std::condition_variable idle;  // told when `busy` ends
  bool busy = false;             // a thread is at work on the factors: only it writes

  using Vector = Factors::Vector;
  Vector values;  // of A, for which `factors` hold, or else what `verdict` says; none before A is met
  enum Verdict { met, left_to_H, refused } verdict = met;  // refused: a seeded search would fail again
  std::shared_ptr<const Factors> factors;
  /// Where eval mode met A. Training takes this over where it gets there itself; else it counts for nothing.
  struct Visit {
    Vector values;
    std::shared_ptr<const Factors> factors;  // moved there; null: they could not be
  } visit;
  int64_t steps = 0, fresh = 0, on_H = 0;
  bool counted_on_H = false;                    // these values are
  int64_t followed = 0;                         // steps since the last search
  int64_t wait = 0, next_wait = kShortestWait;  // steps until the next search

  void wait_longer() {
    wait = next_wait;
    next_wait = std::min(2 * wait, kLongestWait);
  }
  void count_on_H() {
    if (!counted_on_H) ++on_H;
    counted_on_H = true;
  }
  /// True where it is known what A's present values run on.
  bool decided(Search search) const {
    return factors || verdict == refused || (verdict == left_to_H && search != Search::now);
  }
};

}  // namespace quatrain::ops::structure
