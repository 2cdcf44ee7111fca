#pragma once

#include <ATen/core/Tensor.h>

#include "quatrain/api.h"

namespace quatrain::models {

/// Sinusoidal positions (length, width), float32, as Tensor2Tensor lays them out: sines in the first half,
/// cosines in the second, wavelengths from 2 pi to 20,000 pi in geometric steps; a last odd column is zero.
QUATRAIN_API at::Tensor sinusoidal_positions(int64_t length, int64_t width);

}  // namespace quatrain::models
