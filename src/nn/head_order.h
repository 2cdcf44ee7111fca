#pragma once

#include <ATen/core/Tensor.h>

#include "quatrain/nn/attention.h"

/// Where the channels of attention heads lie. A head's channels are together in a real layer; with n
/// components cut inside, each component holds a part of each head.
namespace quatrain::nn {

/// For each of the `parts` * width rows of a projection (or columns of the output's) in the order of `to`:
/// the row with the same head and place in the order of `from`. parts: 3 for a packed projection. Undefined
/// where both cut alike: all stay where they are.
at::Tensor head_order(const MultiheadAttentionOptions& from, const MultiheadAttentionOptions& to,
                      int64_t parts);

}  // namespace quatrain::nn
