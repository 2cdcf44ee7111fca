#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "quatrain/algebra.h"
#include "quatrain/ops.h"

/// What the files of the operator `linear` share: its arguments, checks, and the forms it is evaluated in.
namespace quatrain::ops {

using Gradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;
using Mask = std::array<bool, 3>;

/// The arguments that are no differentiable tensors, as both operators take them.
struct Call {
  std::string algebra;          ///< a fixed one's name, "learned" or "factored"
  std::optional<at::Tensor> A;  ///< learned: (n, n, n); factored: its factors U, V, W themselves, (3, n, R)
  std::vector<at::Tensor> factors;  ///< of a learned A: U, V, W or none; never differentiated
  Way way = Way::automatic;
  std::optional<at::ScalarType> dtype;
  bool constant = false;

  bool learned() const { return A.has_value() && A->defined(); }
  bool factored() const { return algebra == "factored"; }
  /// The learned tensor itself (n, n, n), differentiable.
  at::Tensor structure() const;
  /// From the gradient of `structure()` to that of the argument A; differentiable.
  at::Tensor structure_gradient(const at::Tensor& gradient) const;
  /// R of the factors at hand, whoever brings them; 0: none.
  int64_t rank() const;
  /// U, V or W of a learned tensor, where there are factors.
  at::Tensor factor(int64_t which) const;
  /// The fixed algebra; null for a learned one.
  const algebra::Algebra* fixed() const;
  /// The type to compute in.
  at::ScalarType compute_dtype(const at::Tensor& x) const { return dtype.value_or(x.scalar_type()); }
};

Call make_call(std::string_view algebra, const std::optional<at::Tensor>& A,
               const std::optional<at::Tensor>& U, const std::optional<at::Tensor>& V,
               const std::optional<at::Tensor>& W, std::string_view way, std::optional<at::ScalarType> dtype,
               bool constant);

/// Throws unless the shapes, types and devices fit. Works on symbolic sizes.
void check_linear(const char* function, const at::Tensor& x, const at::Tensor& S, const Call& call);
void check_bias(const at::Tensor& bias, const at::Tensor& S);
void check_grad(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S, const Call& call);

/// The product of x's leading sizes.
int64_t rows_of(const at::Tensor& x);
/// The sizes of `like` with another last one.
std::vector<int64_t> sizes_with(const at::Tensor& like, int64_t last);

/// The three ways, composed of ATen's products; the prepared weights are kept here. Not differentiable.
namespace composed {
at::Tensor linear(const at::Tensor& x, const at::Tensor& S, const std::optional<at::Tensor>& bias,
                  const Call& call);
Gradients linear_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S, const Call& call,
                          Mask mask);
}  // namespace composed

/// The same maps in plain differentiable ATen calls without constant tensors, for function transforms
/// (torch.func, forward-mode derivatives): always through H, since frozen factors would give wrong second
/// derivatives.
namespace traced {
at::Tensor materialise(const at::Tensor& S, const Call& call);
at::Tensor linear(const at::Tensor& x, const at::Tensor& S, const std::optional<at::Tensor>& bias,
                  const Call& call);
Gradients linear_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S, const Call& call,
                          Mask mask);
}  // namespace traced

}  // namespace quatrain::ops
