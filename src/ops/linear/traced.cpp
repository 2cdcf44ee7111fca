#include <ATen/TensorOperators.h>
#include <ATen/ops/add.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/stack.h>

#include "ops/linear/linear.h"
#include "ops/weighted_sum.h"

namespace quatrain::ops::traced {

namespace {

// A fixed table enters by its numbers: a constant tensor made inside a trace would belong to no one.

/// Blocks (a, b) of dH: (n, m, n, p).
at::Tensor blocks_of(const at::Tensor& dH, const at::Tensor& S) {
  return dH.reshape_symint({S.sym_size(0), S.sym_size(1), S.sym_size(0), S.sym_size(2)});
}

/// The same as a matrix (n n, m p). Products of matrices, not einsum, which batched gradients do not go
/// through.
at::Tensor rows_of_blocks(const at::Tensor& blocks) {
  return blocks.permute({0, 2, 1, 3})
      .reshape_symint({blocks.sym_size(0) * blocks.sym_size(0), blocks.sym_size(1) * blocks.sym_size(3)});
}

/// The last two axes of three as one.
at::Tensor flat(const at::Tensor& t) {
  return t.reshape_symint({t.sym_size(0), t.sym_size(1) * t.sym_size(2)});
}

}  // namespace

at::Tensor materialise(const at::Tensor& S, const Call& call) {
  const algebra::Algebra* fixed = call.fixed();
  if (!fixed)
    return at::matmul(flat(call.structure().to(S.scalar_type())).t(), flat(S))
        .reshape_symint({S.sym_size(0), S.sym_size(0), S.sym_size(1), S.sym_size(2)})
        .permute({0, 2, 1, 3})
        .reshape_symint({S.sym_size(0) * S.sym_size(1), S.sym_size(0) * S.sym_size(2)});
  const int n = fixed->n();
  std::vector<at::Tensor> rows;
  for (int a = 0; a < n; ++a) {
    std::vector<at::Tensor> row;
    for (int b = 0; b < n; ++b) {
      WeightedSum block;
      for (int i = 0; i < n; ++i) block.add(S.select(0, i), fixed->table(i, a, b));
      row.push_back(block.or_zeros_like(S.select(0, 0)));
    }
    rows.push_back(at::cat(row, 1));
  }
  return at::cat(rows, 0);
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& S, const Optional& bias, const Call& call) {
  check_linear("linear", x, S, call);
  check_bias(bias, S);
  const at::ScalarType dtype = call.compute_dtype(x);
  return at::linear(x.to(dtype), materialise(S, call).to(dtype),
                    given(bias) ? Optional(bias->to(dtype)) : std::nullopt);
}

std::tuple<at::Tensor, at::Tensor> weight_gradients(const at::Tensor& of_H, const at::Tensor& S,
                                                    const Call& call, bool want_S, bool want_A) {
  const at::Tensor dH = blocks_of(of_H, S);
  at::Tensor dS, dA;
  if (const algebra::Algebra* fixed = call.fixed(); want_S && fixed) {
    const int n = fixed->n();
    std::vector<at::Tensor> parts;
    for (int i = 0; i < n; ++i) {
      WeightedSum part;
      for (int a = 0; a < n; ++a)
        for (int b = 0; b < n; ++b) part.add(dH.select(0, a).select(1, b), fixed->table(i, a, b));
      parts.push_back(part.or_zeros_like(dH.select(0, 0).select(1, 0)));
    }
    dS = at::stack(parts, 0).to(S.scalar_type());
  } else if (want_S) {
    dS = at::matmul(flat(call.structure().to(dH.scalar_type())), rows_of_blocks(dH))
             .reshape_symint(S.sym_sizes())
             .to(S.scalar_type());
  }
  if (want_A && call.learned())
    dA = call.structure_gradient(at::matmul(flat(S.to(dH.scalar_type())), rows_of_blocks(dH).t())
                                     .reshape_symint({S.sym_size(0), S.sym_size(0), S.sym_size(0)}))
             .to(call.A->scalar_type());
  return {dS, dA};
}

Gradients linear_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S, const Call& call,
                          Mask mask) {
  check_linear("linear_backward", x, S, call);
  check_grad(grad, x, S, call);
  const at::ScalarType dtype = call.compute_dtype(x);
  at::Tensor dx, dS, dA;
  if (mask[0]) dx = at::matmul(grad.to(dtype), materialise(S, call).to(dtype)).to(x.scalar_type());
  if (mask[1] || mask[2])
    std::tie(dS, dA) = weight_gradients(at::matmul(by_rows(grad).to(dtype).t(), by_rows(x).to(dtype)), S,
                                        call, mask[1], mask[2]);
  return {dx, dS, dA};
}

}  // namespace quatrain::ops::traced
