#pragma once

#include <cstdint>

namespace quatrain::ops {

/// Columns of a matrix of weights: the number of keys rounded up, as the kernels need it, and so that
/// products have few different shapes.
inline int64_t filled_up(int64_t keys) {
  constexpr int64_t kStep = 16;
  return (keys + kStep - 1) / kStep * kStep;
}

}  // namespace quatrain::ops
