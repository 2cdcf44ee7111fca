#pragma once

#include <ATen/core/Tensor.h>

#include "quatrain/api.h"

namespace quatrain::nn {

/// Interleaved to concatenated components: (..., n m) with [r0 i0 j0 k0 r1 ...] becomes [r0 r1 .. | i0 i1 ..
/// | j.. | k..], the layout of everything else in Quatrain. n must divide the last axis.
QUATRAIN_API at::Tensor to_concatenated(const at::Tensor& interleaved, int64_t n);

/// Concatenated to interleaved components: the inverse of to_concatenated.
QUATRAIN_API at::Tensor to_interleaved(const at::Tensor& concatenated, int64_t n);

}  // namespace quatrain::nn
