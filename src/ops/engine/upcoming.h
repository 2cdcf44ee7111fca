#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/kernels.h"
#include "ops/engine/engine.h"

namespace quatrain::ops::engine {

/// Memory that is needed soon: two stretches, one after the other, which the next products fetch in equal
/// shares while they multiply.
class Upcoming {
 public:
  Upcoming() = default;
  Upcoming(kernels::cpu::Fetched first, kernels::cpu::Fetched second, int64_t products)
      : now_(first), later_(second), share_(share_of(first.count + second.count, products)) {}

  /// What the next product fetches.
  kernels::cpu::Fetched next() {
    if (now_.count == 0) std::swap(now_, later_);
    const kernels::cpu::Fetched share{now_.from, std::min(share_, now_.count)};
    now_.from += share.count, now_.count -= share.count;
    return share;
  }

 private:
  /// One product has less, where the first memory ends.
  static int64_t share_of(int64_t count, int64_t products) {
    const int64_t whole = std::max<int64_t>(1, products - 1);
    return (count + whole - 1) / whole;
  }

  kernels::cpu::Fetched now_, later_;
  int64_t share_ = 0;
};

/// The stored rows from `first` to `last` of n matrices with so many columns together, where they are one
/// stretch of memory; else nothing.
inline kernels::cpu::Fetched stretch_of(const Blocks& blocks, int64_t columns, int64_t first, int64_t last) {
  if (!blocks.data || blocks.row != columns || first >= last) return {};
  const int64_t size = columns * static_cast<int64_t>(at::elementSize(blocks.dtype));
  return {static_cast<const float*>(blocks.data) + first * size / 4, (last - first) * size / 4};
}

/// What these rows of the result need: those of A where one block is the whole sum, and their own places.
inline Upcoming upcoming_rows(const Pass& p, bool whole_sum, int64_t first, int64_t last, int64_t products) {
  const bool inputs = whole_sum && p.A.size() == 1 && !p.A[0].blocks.transposed;
  return {inputs ? stretch_of(p.A[0].blocks, p.n * p.K, first, last) : kernels::cpu::Fetched{},
          stretch_of(p.C, p.n * p.N, first, last), products};
}

/// What this part of the sum needs, where both operands have a stored row for each of its terms.
inline Upcoming upcoming_terms(const Pass& p, int64_t first, int64_t last, int64_t products) {
  if (p.packed || p.A.size() != 1 || !p.A[0].blocks.transposed || p.B.size() != 1 || p.B[0].blocks.transposed)
    return {};
  return {stretch_of(p.A[0].blocks, p.n * p.M, first, last),
          stretch_of(p.B[0].blocks, p.n * p.N, first, last), products};
}

}  // namespace quatrain::ops::engine
