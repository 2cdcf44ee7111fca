#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/randint.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cpu/kernels.h"

namespace quatrain::ops {

/// A seed of the CPU's generator. It says its device, without which no checkpoint can be compiled.
inline at::Tensor new_seed() {
  return at::randint(std::numeric_limits<int64_t>::max(), {1}, at::TensorOptions(at::kLong).device(at::kCPU));
}

/// Refuses what says no draws for x. A seed without a value may only meet an x without values.
inline void check_draws(const char* function, double p, const at::Tensor& seed, const at::Tensor& x) {
  TORCH_CHECK(p >= 0 && p <= 1, function, ": p must be from 0 to 1, got ", p);
  TORCH_CHECK(seed.layout() == at::kStrided && seed.sym_numel() == 1 && seed.is_meta() <= x.is_meta() &&
                  at::isIntegralType(seed.scalar_type(), /*includeBool=*/false),
              function, ": seed must be a tensor of one integer, got ", seed.scalar_type(), " on ",
              seed.device());
}

/// What dropout with the probability p drops under a seed, in a matrix whose first row has the number `row`.
/// Forward and backward must give a row the same number.
inline kernels::cpu::Drop drop_of(double p, int64_t seed, int64_t row) {
  return {static_cast<uint64_t>(seed), static_cast<uint64_t>(row),
          static_cast<uint32_t>(std::min(p * 4294967296.0, 4294967295.0)),
          p < 1 ? static_cast<float>(1 / (1 - p)) : 0.0F};
}

}  // namespace quatrain::ops
