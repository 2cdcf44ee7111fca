#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/kernels.h"

namespace quatrain::ops {

/// What dropout with the probability p drops under a seed, in a matrix whose first row has the number `row`.
/// All that draws under one seed must number rows alike.
inline kernels::cpu::Drop drop_of(double p, int64_t seed, int64_t row) {
  return {static_cast<uint64_t>(seed), static_cast<uint64_t>(row),
          static_cast<uint32_t>(std::min(p * 4294967296.0, 4294967295.0)),
          p < 1 ? static_cast<float>(1 / (1 - p)) : 0.0F};
}

}  // namespace quatrain::ops
