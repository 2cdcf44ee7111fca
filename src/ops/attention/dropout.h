#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/kernels.h"

namespace quatrain::ops {

/// Columns of a matrix of weights: the number of keys rounded up, as the kernels need it, and so that
/// products have few different shapes.
inline int64_t filled_up(int64_t keys) {
  constexpr int64_t kStep = 16;
  return (keys + kStep - 1) / kStep * kStep;
}

/// Dropout of attention weights with the probability p, for rows from `row` on. Rows are numbered through
/// texts, heads, maps and queries, in this order; all that draws under a seed agrees on that.
inline kernels::cpu::Drop drop_of(double p, int64_t seed, int64_t row) {
  return {static_cast<uint64_t>(seed), static_cast<uint64_t>(row),
          static_cast<uint32_t>(std::min(p * 4294967296.0, 4294967295.0)),
          p < 1 ? static_cast<float>(1 / (1 - p)) : 0.0F};
}

}  // namespace quatrain::ops
