#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <vector>

#include "kernels/cpu/kernels.h"

/// Operands of the kernels that notice each access outside their values.
namespace quatrain::kernels::cpu::test {

inline double to_double(float value) {
  return value;
}
inline double to_double(bf16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

/// A NaN that no computation gives.
template <class T>
T sentinel() {
  if constexpr (sizeof(T) == 2)
    return 0x7fdb;
  else
    return std::bit_cast<T>(0x7fdbadbeU);
}
template <class T>
bool is_sentinel(T value) {
  const T expected = sentinel<T>();
  return std::memcmp(&value, &expected, sizeof(T)) == 0;
}

/// Memory whose end is the end of a page, with a page behind it that nobody may touch.
class Fenced {
 public:
  explicit Fenced(size_t bytes) : page_(static_cast<size_t>(::sysconf(_SC_PAGESIZE))) {
    size_ = (bytes + page_ - 1) / page_ * page_;
    memory_ = ::mmap(nullptr, size_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED || ::mprotect(static_cast<char*>(memory_) + size_, page_, PROT_NONE) != 0)
      throw std::bad_alloc();
  }
  ~Fenced() { ::munmap(memory_, size_ + page_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  template <class T>
  T* begin() const {
    return static_cast<T*>(memory_);
  }
  template <class T>
  T* end() const {
    return begin<T>() + size_ / sizeof(T);
  }

 private:
  size_t page_, size_;
  void* memory_;
};

/// `count` matrices, rows `padding` values apart: sentinels in all gaps and in front, a fence behind the last
/// value.
template <class T>
class Matrices {
 public:
  Matrices(int64_t count, int64_t rows, int64_t cols, int64_t padding)
      : count_(count),
        rows_(rows),
        cols_(cols),
        row_(cols + padding),
        size_(count * rows * row_ - (count * rows > 0 ? padding : 0)),
        memory_(static_cast<size_t>(size_ + 64) * sizeof(T)) {
    for (T* p = memory_.begin<T>(); p != memory_.end<T>(); ++p) *p = sentinel<T>();
    for (int64_t c = 0; c < count; ++c) pointers_.push_back(first() + c * rows * row_);
  }

  int64_t row() const { return row_; }
  T* const* data() const { return pointers_.data(); }
  const T* const* inputs() const { return pointers_.data(); }
  T& at(int64_t c, int64_t row, int64_t col) const {
    return pointers_[static_cast<size_t>(c)][row * row_ + col];
  }
  double value(int64_t c, int64_t row, int64_t col) const { return to_double(at(c, row, col)); }

  /// Random values in [-1, 1), the same in each run.
  void fill(unsigned seed) {
    std::minstd_rand random(seed + 1);
    for (int64_t c = 0; c < count_; ++c)
      for (int64_t i = 0; i < rows_; ++i)
        for (int64_t j = 0; j < cols_; ++j) {
          const float value = static_cast<float>(random()) / (1U << 30) - 1;
          if constexpr (sizeof(T) == 2)
            at(c, i, j) = static_cast<T>(std::bit_cast<uint32_t>(value) >> 16);
          else
            at(c, i, j) = value;
        }
  }

  /// True where every value outside the matrices is as it was.
  bool gaps_are_untouched() const {
    for (const T* p = memory_.begin<T>(); p != memory_.end<T>(); ++p) {
      const int64_t place = p - first();
      if ((place < 0 || place % row_ >= cols_) && !is_sentinel(*p)) return false;
    }
    return true;
  }

 private:
  T* first() const { return memory_.end<T>() - size_; }

  int64_t count_, rows_, cols_, row_, size_;
  Fenced memory_;
  std::vector<T*> pointers_;
};

}  // namespace quatrain::kernels::cpu::test
