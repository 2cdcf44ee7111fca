// Component-wise operations on tensors of hypercomplex numbers, composed of ATen calls: differentiable, and
// traced as such.

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <torch/library.h>

#include "ops/find_algebra.h"
#include "ops/weighted_sum.h"
#include "quatrain/algebra.h"
#include "quatrain/ops.h"

namespace quatrain::ops {

namespace {

/// The n components on the last axis.
std::vector<at::Tensor> split(const char* function, const at::Tensor& t, int n) {
  TORCH_CHECK(t.dim() >= 1 && t.sym_size(-1) % n == 0, function,
              ": the last axis must be divisible by n = ", n, ", got ", t.sym_sizes());
  const c10::SymInt width = t.sym_size(-1) / n;
  std::vector<at::Tensor> parts;
  for (int c = 0; c < n; ++c) parts.push_back(t.narrow_symint(-1, width * c, width));
  return parts;
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b, std::string_view name) {
  const algebra::Algebra& algebra = find_algebra("hamilton_product", name);
  const int n = algebra.n();
  TORCH_CHECK(a.dim() >= 1 && b.dim() >= 1 && a.sym_size(-1) == b.sym_size(-1),
              "hamilton_product: the last axes must be equal, got ", a.sym_sizes(), " and ", b.sym_sizes());
  const auto left = split("hamilton_product", a, n), right = split("hamilton_product", b, n);
  std::vector<WeightedSum> sums(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i)
    for (int c = 0; c < n; ++c)
      for (int j = 0; j < n; ++j) {
        const double value = algebra.table(i, c, j);
        if (value == 0) continue;
        sums[static_cast<size_t>(c)].add(left[static_cast<size_t>(i)] * right[static_cast<size_t>(j)], value);
      }
  const at::Tensor zero_like = left[0] * right[0];
  std::vector<at::Tensor> result;
  for (const WeightedSum& sum : sums) result.push_back(sum.or_zeros_like(zero_like));
  return at::cat(result, -1);
}

at::Tensor conjugate(const at::Tensor& a, std::string_view name) {
  const algebra::Algebra& algebra = find_algebra("hypercomplex_conjugate", name);
  auto parts = split("hypercomplex_conjugate", a, algebra.n());
  for (size_t c = 0; c < parts.size(); ++c)
    if (algebra.conjugation()[c] != 1) parts[c] = parts[c] * algebra.conjugation()[c];
  return at::cat(parts, -1);
}

at::Tensor norm_of(const at::Tensor& a, std::string_view name) {
  const int n = find_algebra("hypercomplex_norm", name).n();
  return at::linalg_vector_norm(at::stack(split("hypercomplex_norm", a, n), 0), 2, {0}, false, std::nullopt);
}

}  // namespace

at::Tensor hamilton_product(const at::Tensor& a, const at::Tensor& b, std::string_view algebra) {
  return product(a, b, algebra);
}
at::Tensor hypercomplex_conjugate(const at::Tensor& a, std::string_view algebra) {
  return conjugate(a, algebra);
}
at::Tensor hypercomplex_norm(const at::Tensor& a, std::string_view algebra) {
  return norm_of(a, algebra);
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def("hamilton_product(Tensor a, Tensor b, str algebra) -> Tensor", &product);
  m.def("hypercomplex_conjugate(Tensor a, str algebra) -> Tensor", &conjugate);
  m.def("hypercomplex_norm(Tensor a, str algebra) -> Tensor", &norm_of);
}

// vmap sees what they are composed of.
TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("hamilton_product", &product);
  m.impl("hypercomplex_conjugate", &conjugate);
  m.impl("hypercomplex_norm", &norm_of);
}

}  // namespace quatrain::ops
