#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "ops/map/call.h"

/// The operator `linear`. A call goes through these files, in this order:
///
///   functions.cpp   the C++ functions of quatrain/ops.h, which hand a call to torch's dispatcher
///   schema.cpp      the registered schemas, and what is registered for every device; schema.h unpacks a call
///   autocast.cpp, meta.cpp
///   autograd.cpp    records it, by derivatives.h; traced.cpp under function transforms
///   cpu.cpp         the engine, through map/bilinear_map.h; composed.cpp for other devices and types
///
/// `linear` and `linear_backward` belong to one form, Q(g, x, S, A) = sum_i,a,b A[i,a,b] g_a . (S_i x_b):
/// linear is dQ/dg, linear_backward the other three partial derivatives. So the two are closed under
/// differentiation.
namespace quatrain::ops {

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Mask = std::array<bool, 3>;
using Optional = std::optional<at::Tensor>;

/// Throws unless the shapes, types and devices fit. Works on symbolic sizes.
void check_linear(const char* function, const at::Tensor& x, const at::Tensor& S, const Call& call);
void check_bias(const Optional& bias, const at::Tensor& S);
void check_grad(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S, const Call& call);

/// True for a tensor that is given and defined.
inline bool given(const Optional& t) {
  return t && t->defined();
}

/// The product of x's leading sizes.
int64_t rows_of(const at::Tensor& x);
/// t as a matrix of its last axis, which may be empty; works on symbolic sizes.
at::Tensor by_rows(const at::Tensor& t);
/// The sizes of `like` with another last one.
std::vector<int64_t> sizes_with(const at::Tensor& like, int64_t last);

/// The three ways, composed of ATen's products; the prepared weights are kept here. Not differentiable.
namespace composed {
at::Tensor linear(const at::Tensor& x, const at::Tensor& S, const Optional& bias, const Call& call);
Gradients linear_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S, const Call& call,
                          Mask mask);
}  // namespace composed

/// The same maps in plain differentiable ATen calls without constant tensors, for function transforms
/// (torch.func, forward-mode derivatives): always through H, since frozen factors would give wrong second
/// derivatives.
namespace traced {
at::Tensor materialise(const at::Tensor& S, const Call& call);
at::Tensor linear(const at::Tensor& x, const at::Tensor& S, const Optional& bias, const Call& call);
Gradients linear_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S, const Call& call,
                          Mask mask);
/// The gradients of S and A from that of H (n m, n p), where they are wanted.
std::tuple<at::Tensor, at::Tensor> weight_gradients(const at::Tensor& of_H, const at::Tensor& S,
                                                    const Call& call, bool want_S, bool want_A);
}  // namespace traced

}  // namespace quatrain::ops
