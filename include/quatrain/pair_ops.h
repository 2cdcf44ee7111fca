#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>
#include <tuple>

#include "quatrain/api.h"

namespace quatrain::ops {

/// What each word of two texts sees in the other one (QNLP 3.2): with E = A * B^T, the product of the
/// algebra, not scaled, it is B' = softmax(E) . B and A' = softmax(E^T) . A, component by component.
///
/// first (B, la, n, heads, m) and second (B, lb, n, heads, m), as cut_heads cuts them; paddings (B, la) and
/// (B, lb) bool, true where there is no word -> B' (B, la, n heads m) and A' (B, lb, n heads m). They are two
/// calls of hypercomplex_attention, and follow its rules. On a CPU in float32 both directions of a pair of
/// short texts share one map of scores a component, in both passes: where n > 1 and what a pair takes stays
/// in the caches, such as 64 words of 200 quaternions each, or 32 octonions. Errors: see ops.h.
QUATRAIN_API std::tuple<at::Tensor, at::Tensor> hypercomplex_alignment(const at::Tensor& first,
                                                                       const at::Tensor& second,
                                                                       const at::Tensor& first_padding,
                                                                       const at::Tensor& second_padding,
                                                                       std::string_view algebra);

/// What a comparison of the numbers a and b sees: (..., n m) twice -> (..., n 4 m), in each component a, b, a
/// * b and a - b. The product is that of an algebra of n dimensions (64 at most), or element by element where
/// the algebra is real. On a CPU in float32 kernels make it and its gradients; differentiable any number of
/// times.
QUATRAIN_API at::Tensor hypercomplex_matching(const at::Tensor& a, const at::Tensor& b,
                                              std::string_view algebra, int64_t n);

}  // namespace quatrain::ops
