#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/algebra.h"
#include "quatrain/ops.h"

/// What an operator over an algebra is called with, beside the tensors that it maps.
namespace quatrain::ops {

struct QUATRAIN_API Call {
  std::string algebra;          ///< a fixed one's name, "learned" or "factored"
  std::optional<at::Tensor> A;  ///< learned: (n, n, n); factored: its factors U, V, W themselves, (3, n, R)
  std::vector<at::Tensor> factors;  ///< of a learned A: U, V, W or none; never differentiated
  Way way = Way::automatic;
  std::optional<at::ScalarType> dtype;
  bool constant = false;
  mutable const algebra::Algebra* known = nullptr;  ///< what fixed() found: looking it up takes a lock

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
  /// The fixed algebra; null for a learned one. An unknown name is an error of the function named.
  const algebra::Algebra* fixed(const char* function = "linear") const;
  /// The type to compute in.
  at::ScalarType compute_dtype(const at::Tensor& x) const { return dtype.value_or(x.scalar_type()); }
};

/// A list in an operator's schema that is empty where there is nothing to tell. Optional, because the
/// programs that AOTInductor makes hand over an empty list as none.
using SomeTensors = std::optional<at::TensorList>;
inline at::TensorList listed(const SomeTensors& tensors) {
  return tensors.value_or(at::TensorList());
}

/// The way is the one asked for here, else by a guard or by the environment.
Call make_call(std::string_view algebra, const std::optional<at::Tensor>& A, at::TensorList factors,
               std::string_view way = "auto", std::optional<at::ScalarType> dtype = std::nullopt,
               bool constant = false);
QUATRAIN_API Call make_call(const Product& product);

/// Throws unless weight, call and each other fit: shapes, types, layouts and devices. Works on symbolic
/// sizes.
void check_weight(const char* function, const at::Tensor& S, const Call& call);
/// The same of a weight of any shape (n, ...), which is the named argument.
void check_blocks(const char* function, const char* argument, const at::Tensor& S, const Call& call);
/// Throws unless t is a dense tensor of floating point.
void check_values(const char* function, const char* argument, const at::Tensor& t);

}  // namespace quatrain::ops
