#pragma once

#include <ATen/Parallel.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <exception>

namespace quatrain::ops::engine {

/// ATen's threads in one parallel region that go together through many short phases, as the steps of a
/// recurrence are: a region for each phase would cost more than some phases take.
class Team {
 public:
  /// How many threads a team may have here. Other pools than OpenMP's may run its parts one after the other,
  /// which would wait for each other.
  static int64_t most() {
    return AT_PARALLEL_OPENMP && !at::in_parallel_region() ? at::get_num_threads() : 1;
  }

  struct Range {
    int64_t begin, end;
  };

  /// One thread of the team. It does the parts begin .. end of as many as the team was asked for: OpenMP may
  /// grant fewer threads.
  class Member {
   public:
    /// What is this thread's of so many things.
    Range share(int64_t size) const { return {size * begin_ / team_.parts_, size * end_ / team_.parts_}; }
    /// This thread's parts themselves.
    Range parts() const { return {begin_, end_}; }
    /// Returns when all threads have come here.
    void wait() const { team_.wait(end_ - begin_); }

   private:
    friend class Team;
    Member(Team& team, int64_t begin, int64_t end) : team_(team), begin_(begin), end_(end) {}
    Team& team_;
    int64_t begin_, end_;
  };

  /// Calls work(member) on `threads` threads, at most `most()`. What one throws is thrown, and ends the
  /// others where they wait.
  template <class Work>
  static void run(int64_t threads, const Work& work) {
    Team team(threads);
    at::parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      try {
        work(Member(team, begin, end));
      } catch (const Ended&) {
      } catch (...) {
        if (!team.failed_.exchange(true)) team.error_ = std::current_exception();
      }
    });
    if (team.error_) std::rethrow_exception(team.error_);
  }

 private:
  struct Ended {};  // of a thread that waits for one that failed

  explicit Team(int64_t parts) : parts_(parts) {}

  void wait(int64_t parts) {
    if (parts == parts_) return;
    const uint32_t round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(parts, std::memory_order_acq_rel) + parts == parts_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    // Beside other work a thread that is waited for may have no processor: it is given this one.
    constexpr int kSpins = 200;
    for (int i = 0; round_.load(std::memory_order_acquire) == round; ++i) {
      if (failed_) throw Ended();
      if (i < kSpins)
        pause();
      else
        ::sched_yield();
    }
  }

  static void pause() {
#ifdef __x86_64__
    __builtin_ia32_pause();
#endif
  }

  const int64_t parts_;
  alignas(64) std::atomic<int64_t> arrived_{0};
  alignas(64) std::atomic<uint32_t> round_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;  // what the first to fail threw, read when all have ended
};

}  // namespace quatrain::ops::engine
