#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "quatrain/api.h"

namespace quatrain::data {

/// The latest rows of a stream, float32, counted from the stream's first. They lie in memory that grows to
/// what is needed and is used again: appending copies none of the rows before, and a long stream leaves no
/// holes of many sizes in the heap.
class QUATRAIN_API RecentRows {
 public:
  /// A row is one value.
  RecentRows();
  /// A row is so many values.
  explicit RecentRows(int64_t columns);
  RecentRows(RecentRows&&) = default;  // a copy would write to the same memory
  RecentRows& operator=(RecentRows&&) = default;

  /// The stream's next rows, (rows) or (rows, columns).
  void append(const at::Tensor& rows);
  /// Lets go of the rows before this number, as far as there are any.
  void forget_before(int64_t number);

  /// The numbers of the first row that is kept, and of the one behind the last.
  int64_t begin() const { return begin_; }
  int64_t end() const { return begin_ + count_; }
  /// Those from begin() to end(): a view, which holds until the next call of append or forget_before.
  at::Tensor kept() const { return memory_.narrow(0, 0, count_); }

 private:
  at::Tensor memory_;  // the rows come first
  int64_t begin_ = 0, count_ = 0;
};

}  // namespace quatrain::data
