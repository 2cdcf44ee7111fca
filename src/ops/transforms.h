#pragma once

#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <algorithm>
#include <initializer_list>
#include <vector>

/// What acts on a call: autograd, traces, and torch.func.
namespace quatrain::ops {

/// True for a tensor whose gradient is asked for.
inline bool wants_grad(const at::Tensor& t) {
  return t.defined() && t.requires_grad();
}

/// True for what a trace has wrapped.
inline bool has_tracing_key(const at::Tensor& t) {
  constexpr c10::DispatchKeySet kTraced{c10::DispatchKey::Python, c10::DispatchKey::Functionalize};
  return t.key_set().has_any(kTraced);
}

/// True where a trace is made, or may be: constants must be numbers, and kernels operators.
inline bool is_traced(const at::Tensor& t) {
  return has_tracing_key(t) || c10::impl::TorchDispatchModeTLS::any_modes_set();
}

/// C++ autograd functions refuse function transforms and forward-mode derivatives.
inline bool in_function_transform() {
  return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerBackMode);
}
inline bool has_tangent(const at::Tensor& t) {
  return t.defined() && t._fw_grad(0).defined();
}
inline bool transformed(std::initializer_list<at::Tensor> inputs) {
  return in_function_transform() || std::any_of(inputs.begin(), inputs.end(), &has_tangent);
}

/// True while calls are traced into a program, which may contain an operator in place of a device's kernels.
inline bool is_compiled() {
  using Key = c10::impl::TorchDispatchModeKey;
  for (const Key mode : {Key::FUNCTIONAL, Key::PROXY, Key::FAKE})
    if (c10::impl::TorchDispatchModeTLS::get_mode(mode)) return true;
  return false;
}

/// t.unflatten(axis, into) and t.flatten(first, first + 1), which batched gradients (is_grads_batched) have
/// no rules for.
inline at::Tensor split_axis(const at::Tensor& t, int64_t axis, std::initializer_list<c10::SymInt> into) {
  std::vector<c10::SymInt> sizes = t.sym_sizes().vec();
  const auto at = sizes.begin() + (axis < 0 ? axis + t.dim() : axis);
  sizes.insert(sizes.erase(at), into);
  return t.reshape_symint(sizes);
}

inline at::Tensor join_axes(const at::Tensor& t, int64_t first) {
  std::vector<c10::SymInt> sizes = t.sym_sizes().vec();
  const auto at = sizes.begin() + (first < 0 ? first + t.dim() : first);
  *at *= *(at + 1);
  sizes.erase(at + 1);
  return t.reshape_symint(sizes);
}

/// Gradients of lookups may be sparse.
inline at::Tensor dense_gradient(const at::Tensor& grad) {
  return grad.layout() == at::kStrided ? grad : grad.to_dense();
}

inline bool is_dense_on_cpu(const at::Tensor& t) {
  return t.device().is_cpu() && t.layout() == at::kStrided && !t.is_nested();
}

/// True for a dense tensor of the CPU that nothing but autograd watches: kernels can take its values.
inline bool is_plain(const at::Tensor& t) {
  return is_dense_on_cpu(t) && !has_tangent(t) && !is_traced(t) && !at::isTensorSubclassLike(t);
}

/// at::isTensorSubclassLike, but of the tensor alone: modes do not count. Not by has_any, which may not be
/// asked for a backend: builds of PyTorch with its own checks refuse that.
inline bool is_subclass_like(const at::Tensor& t) {
  return !(t.key_set() & at::kTensorSubclassLike).empty();
}

/// True for a dense tensor of the CPU that an operator of ours may take. Other than kernels an operator is
/// seen by modes and by traces, so these are no reason against it. While a program is compiled all tensors
/// are wrapped, and a user's subclasses cannot be told apart.
inline bool suits_operator(const at::Tensor& t) {
  constexpr c10::DispatchKeySet kTransformed{c10::DispatchKey::FuncTorchBatched,
                                             c10::DispatchKey::FuncTorchGradWrapper};
  return is_dense_on_cpu(t) && !has_tangent(t) &&
         !(is_compiled() ? t.key_set().has_any(kTransformed) : is_subclass_like(t));
}

}  // namespace quatrain::ops
