#pragma once

#include <ATen/core/Tensor.h>

#include "quatrain/api.h"

namespace quatrain::ops {

/// The weighted summands of WKP, H = sum_i A_i (x) (w_i S_i): w_i S_i, for S (n, ...) and w (n), as S is
/// shaped; differentiable. Where S and w stay what they are from call to call (`constant`) and no gradient is
/// wanted, the product is kept beside S and found again, as prepared weights are (prepared.h); one that was
/// written into is not. Throws c10::Error for other shapes of w.
QUATRAIN_API at::Tensor weighted_summands(const at::Tensor& S, const at::Tensor& w, bool constant);

}  // namespace quatrain::ops
