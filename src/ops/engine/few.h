#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

namespace quatrain::ops::engine {

/// An array that takes no memory as long as it is short: a value for each component, product or thread. Zeros
/// at first.
template <class T>
class Few {
 public:
  explicit Few(int64_t size) : size_(size) {
    if (size > kShort)
      long_ = std::make_unique<T[]>(static_cast<size_t>(size));
    else
      std::fill_n(short_, size, T{});
  }

  int64_t size() const { return size_; }
  T* data() { return long_ ? long_.get() : short_; }
  T& operator[](int64_t i) { return data()[i]; }

 private:
  static constexpr int64_t kShort = 64;
  T short_[kShort];
  std::unique_ptr<T[]> long_;
  int64_t size_;
};

}  // namespace quatrain::ops::engine
