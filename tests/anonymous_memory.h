#pragma once

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

namespace quatrain::test {

/// Bytes that this process has in memory and in no file.
inline int64_t anonymous_memory() {
  std::ifstream status("/proc/self/status");
  constexpr int64_t kKilo = 1024;
  for (std::string word; status >> word;)
    if (int64_t kilobytes = 0; word == "RssAnon:" && status >> kilobytes) return kilobytes * kKilo;
  return 0;
}

/// Gives back what is free: the next memory that is taken is seen.
inline void give_back_free_memory() {
  ::malloc_trim(0);
}

/// By how much the anonymous memory has grown at most while one lives.
class MemoryGrowth {
 public:
  MemoryGrowth() : begin_(settled()), most_(begin_), thread_([this] { watch(); }) {}
  ~MemoryGrowth() { end(); }
  MemoryGrowth(const MemoryGrowth&) = delete;
  MemoryGrowth& operator=(const MemoryGrowth&) = delete;

  /// Bytes; to be called once.
  int64_t most() {
    end();
    return most_ - begin_;
  }

 private:
  void watch() {
    for (; !ended_; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
      most_ = std::max(most_, anonymous_memory());
  }
  void end() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }

  static int64_t settled() {
    give_back_free_memory();
    return anonymous_memory();
  }

  int64_t begin_, most_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace quatrain::test
