#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace quatrain::ops::engine {

/// Memory of a thread, kept between calls: no page faults, and no growth after the largest call.
class Scratch {
 public:
  template <class T>
  T* take(int64_t count) {
    const int64_t bytes = (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    T* result = reinterpret_cast<T*>(memory_.get() + used_);
    used_ += bytes;
    return result;
  }
  void begin(int64_t bytes) {
    used_ = 0;
    if (bytes <= size_) return;
    memory_.reset();
    size_ = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    memory_.reset(static_cast<char*>(std::aligned_alloc(kHugePage, static_cast<size_t>(size_))));
    if (!memory_) {
      size_ = 0;
      throw std::bad_alloc();
    }
    ::madvise(memory_.get(), static_cast<size_t>(size_), MADV_HUGEPAGE);  // a wish: fewer entries of the TLB
  }

 private:
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  static constexpr int64_t kHugePage = 1 << 21;

  std::unique_ptr<char, Free> memory_;
  int64_t size_ = 0, used_ = 0;
};

inline Scratch& scratch() {
  static thread_local Scratch memory;
  return memory;
}

}  // namespace quatrain::ops::engine
