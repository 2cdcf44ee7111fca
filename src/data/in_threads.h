#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace quatrain::data {

/// Calls work(0) .. work(count - 1), in as many threads as torch may use. What one throws first is thrown
/// when all threads have ended.
template <class Work>
void for_each_in_threads(int64_t count, const Work& work) {
  std::atomic<int64_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto run = [&] {
    try {
      for (int64_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < std::min<int64_t>(at::get_num_threads(), count); ++i) others.emplace_back(run);
    run();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace quatrain::data
