#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/randint.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cpu/kernels.h"

namespace quatrain::ops {

/// A seed of the CPU's generator. It says its device, without which no checkpoint can be compiled.
inline at::Tensor new_seed() {
  return at::randint(std::numeric_limits<int64_t>::max(), {1}, at::TensorOptions(at::kLong).device(at::kCPU));
}

/// What dropout with the probability p drops under a seed, in a matrix whose first row has the number `row`.
/// Forward and backward must give a row the same number.
inline kernels::cpu::Drop drop_of(double p, int64_t seed, int64_t row) {
  return {static_cast<uint64_t>(seed), static_cast<uint64_t>(row),
          static_cast<uint32_t>(std::min(p * 4294967296.0, 4294967295.0)),
          p < 1 ? static_cast<float>(1 / (1 - p)) : 0.0F};
}

}  // namespace quatrain::ops
