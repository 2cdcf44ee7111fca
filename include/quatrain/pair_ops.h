#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "quatrain/api.h"

namespace quatrain::ops {

/// What a comparison of the numbers a and b sees: (..., n m) twice -> (..., n 4 m), in each component a, b, a
/// * b and a - b. The product is that of an algebra of n dimensions (64 at most), or element by element where
/// the algebra is real. On a CPU in float32 kernels make it and its gradients; differentiable any number of
/// times.
QUATRAIN_API at::Tensor hypercomplex_matching(const at::Tensor& a, const at::Tensor& b,
                                              std::string_view algebra, int64_t n);

}  // namespace quatrain::ops
