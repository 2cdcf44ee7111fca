// What a comparison of two numbers sees: both, their product and their difference. Composed of ATen calls,
// and on a CPU made by kernels.

#include "ops/matching/matching.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "ops/find_algebra.h"
#include "ops/transforms.h"
#include "ops/weighted_sum.h"
#include "quatrain/algebra.h"
#include "quatrain/pair_ops.h"

namespace quatrain::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor composed(const MatchedNumbers& numbers, const at::Tensor& a, const at::Tensor& b) {
  const c10::SymInt m = a.sym_size(-1) / numbers.n;
  const auto A = a.unflatten_symint(-1, {numbers.n, m}), B = b.unflatten_symint(-1, {numbers.n, m});
  std::vector<WeightedSum> sums(static_cast<size_t>(numbers.n));
  for (const auto& [c, i, j, value] : numbers.terms)
    sums[static_cast<size_t>(c)].add(A.select(-2, i) * B.select(-2, j), value);
  std::vector<at::Tensor> products;
  for (const WeightedSum& sum : sums) products.push_back(sum.or_zeros_like(A.select(-2, 0)));
  return at::stack({A, B, at::stack(products, -2), A - B}, -2).flatten(-3);
}

variable_list composed_backward(const MatchedNumbers& numbers, const at::Tensor& grad, const at::Tensor& a,
                                const at::Tensor& b) {
  const c10::SymInt m = a.sym_size(-1) / numbers.n;
  const auto A = a.unflatten_symint(-1, {numbers.n, m}), B = b.unflatten_symint(-1, {numbers.n, m});
  const auto G = split_axis(grad, -1, {numbers.n, 4, m}).unbind(-2);
  std::vector<WeightedSum> of_a(static_cast<size_t>(numbers.n)), of_b(static_cast<size_t>(numbers.n));
  for (const auto& [c, i, j, value] : numbers.terms) {
    const at::Tensor g = G[2].select(-2, c);
    of_a[static_cast<size_t>(i)].add(g * B.select(-2, j), value);
    of_b[static_cast<size_t>(j)].add(g * A.select(-2, i), value);
  }
  const auto joined = [&](const std::vector<WeightedSum>& sums) {
    std::vector<at::Tensor> parts;
    for (const WeightedSum& sum : sums) parts.push_back(sum.or_zeros_like(A.select(-2, 0)));
    return at::stack(parts, -2);
  };
  return {join_axes(G[0] + G[3] + joined(of_a), -2), join_axes(G[1] - G[3] + joined(of_b), -2)};
}

bool kernels_take(const at::Tensor& t) {
  return t.scalar_type() == at::kFloat && is_plain(t);
}

}  // namespace

// What profiles name.
namespace autograd {

struct Matching : torch::autograd::Function<Matching> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& a, const at::Tensor& b,
                            const std::string& algebra, int64_t n) {
    ctx->save_for_backward({a, b});
    ctx->saved_data["algebra"] = algebra;
    ctx->saved_data["n"] = n;
    return cpu::matching({algebra, n}, a, b);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(4);
    if (!grads[0].defined()) return result;
    const variable_list saved = ctx->get_saved_variables();
    const MatchedNumbers numbers(ctx->saved_data["algebra"].toStringRef(), ctx->saved_data["n"].toInt());
    // For a derivative of higher order the gradient is composed, and recorded as such.
    if (at::GradMode::is_enabled() || !kernels_take(grads[0])) {
      const variable_list both = composed_backward(numbers, grads[0], saved[0], saved[1]);
      result[0] = both[0], result[1] = both[1];
    } else {
      std::tie(result[0], result[1]) = cpu::matching_backward(numbers, grads[0], saved[0], saved[1]);
    }
    return result;
  }
};

}  // namespace autograd

MatchedNumbers::MatchedNumbers(std::string_view name, int64_t n) : n(n) {
  const algebra::Algebra* const algebra = &find_algebra("hypercomplex_matching", name);
  const int dimensions = algebra->n();
  TORCH_CHECK_VALUE(n >= 1 && n <= 64 && (dimensions == n || dimensions == 1),
                    "hypercomplex_matching: n must be the dimensions of the algebra, ", dimensions,
                    ", or 1 to 64 where it has one, got ", n);
  for (int64_t first = 0; first < n; first += dimensions)
    for (int c = 0; c < dimensions; ++c)
      for (int i = 0; i < dimensions; ++i)
        for (int j = 0; j < dimensions; ++j)
          if (const double value = algebra->table(i, c, j); value != 0)
            terms.push_back({first + c, first + i, first + j, value});
}

at::Tensor hypercomplex_matching(const at::Tensor& a, const at::Tensor& b, std::string_view algebra,
                                 int64_t n) {
  const MatchedNumbers numbers(algebra, n);
  TORCH_CHECK_VALUE(a.dim() >= 1 && a.sym_sizes() == b.sym_sizes() && a.sym_size(-1) % n == 0,
                    "hypercomplex_matching: a and b must have the same sizes (..., n m) with n = ", n,
                    ", got ", a.sym_sizes(), " and ", b.sym_sizes());
  if (in_function_transform() || !kernels_take(a) || !kernels_take(b)) return composed(numbers, a, b);
  if (at::GradMode::is_enabled() && (wants_grad(a) || wants_grad(b)))
    return autograd::Matching::apply(a, b, std::string(algebra), n);
  return cpu::matching(numbers, a, b);
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def("hypercomplex_matching(Tensor a, Tensor b, str algebra, int n) -> Tensor", &hypercomplex_matching);
}

// vmap sees what it is composed of.
TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("hypercomplex_matching", &hypercomplex_matching);
}

}  // namespace quatrain::ops
