#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string_view>

#include "ops/linear/linear.h"

/// The cache of prepared weights: for a constant weight, its combined blocks or its H, in one dtype.
///
/// An entry belongs to a storage and an offset in it, held weakly: an address that is used again is another
/// storage, and a weight that is gone takes its entry with it. An entry counts only while the weight's data
/// pointer, version, sizes and those of A are what they were. Writes that leave all of these alone (`.data`,
/// some fused optimizers) are met by a second rule: a weight whose gradient was computed is in training, and
/// nothing is kept for it until drop_prepared, which layers call in train(), eval() and after loading.
namespace quatrain::ops {

/// The prepared form of S, from the cache or built now; kept where call.constant allows it.
at::Tensor prepared(const at::Tensor& S, const Call& call, Way way, at::ScalarType dtype,
                    const std::function<at::Tensor()>& build);

/// Says that a gradient of S was computed: forget its form, keep none until drop_prepared(S).
void mark_in_training(const at::Tensor& S);

}  // namespace quatrain::ops
