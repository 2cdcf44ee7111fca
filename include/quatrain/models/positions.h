#pragma once

#include <ATen/core/Tensor.h>

#include "quatrain/api.h"

namespace quatrain::models {

/// Sinusoidal positions (length, width), float32, as Tensor2Tensor lays them out: sines in the first half,
/// cosines in the second, wavelengths from 2 pi to 20,000 pi in geometric steps; a last odd column is zero.
/// The first row is of place `first`.
QUATRAIN_API at::Tensor sinusoidal_positions(int64_t length, int64_t width, int64_t first = 0);

}  // namespace quatrain::models
