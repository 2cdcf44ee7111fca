#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace quatrain::ops::engine {

/// Memory of a thread, kept between calls: no page faults, and no growth after the largest call.
///
/// Under the address sanitizer whatever was not taken since the last begin() is out of bounds: what lies
/// between two parts, and a part that is more than begin() was asked for.
class Scratch {
 public:
  template <class T>
  T* take(int64_t count) {
    const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
    char* const result = memory_.get() + used_ + parts_++ * kRedZone;
    used_ += (bytes + 63) / 64 * 64;
    if (used_ <= asked_ && parts_ <= kMostParts) allow(result, bytes);
    return reinterpret_cast<T*>(result);
  }
  void begin(int64_t bytes) {
    used_ = parts_ = 0, asked_ = bytes;
    reserve(bytes + kMostParts * kRedZone);
    forbid(memory_.get(), size_);
  }

 private:
#ifdef __SANITIZE_ADDRESS__
  static constexpr int64_t kRedZone = 256;
  static void allow(char* first, int64_t bytes) {
    ASAN_UNPOISON_MEMORY_REGION(first, static_cast<size_t>(bytes));
  }
  static void forbid(char* first, int64_t bytes) {
    ASAN_POISON_MEMORY_REGION(first, static_cast<size_t>(bytes));
  }
#else
  static constexpr int64_t kRedZone = 0;
  static void allow(char*, int64_t) {}
  static void forbid(char*, int64_t) {}
#endif
  static constexpr int64_t kMostParts = 64, kHugePage = 1 << 21, kKept = 1 << 25;

  /// What a call needed by way of exception, as attention over long texts does, is given back by the next
  /// one.
  void reserve(int64_t bytes) {
    if (bytes <= size_ && (size_ <= kKept || bytes > size_ / 2)) return;
    memory_.reset();
    size_ = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    memory_.reset(static_cast<char*>(std::aligned_alloc(kHugePage, static_cast<size_t>(size_))));
    if (!memory_) {
      size_ = 0;
      throw std::bad_alloc();
    }
    ::madvise(memory_.get(), static_cast<size_t>(size_), MADV_HUGEPAGE);  // a wish: fewer entries of the TLB
  }

  struct Free {
    void operator()(char* p) const { std::free(p); }
  };

  std::unique_ptr<char, Free> memory_;
  int64_t size_ = 0, asked_ = 0, used_ = 0, parts_ = 0;
};

inline Scratch& scratch() {
  static thread_local Scratch memory;
  return memory;
}

}  // namespace quatrain::ops::engine
