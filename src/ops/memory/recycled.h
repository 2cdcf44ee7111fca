#pragma once

#include <ATen/core/Tensor.h>

#include "quatrain/api.h"

namespace quatrain::ops {

/// An uninitialised float32 tensor whose memory is kept for the next one of about its size when it dies. What
/// a forward pass leaves to its backward pass is large, and fresh pages of the system cost as much as writing
/// them: this saves a tenth of a training step. At most kRecycledBytes lie idle in a process.
QUATRAIN_API at::Tensor recycled_empty(at::IntArrayRef sizes);

/// The bytes that lie idle now. For tests.
QUATRAIN_API size_t recycled_idle();

constexpr int64_t kRecycledBytes = int64_t{1} << 26;

}  // namespace quatrain::ops
