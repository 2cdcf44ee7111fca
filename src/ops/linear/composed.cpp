// The three ways, composed of ATen's products: the reference of every kernel and what runs where no kernel
// does.
//
//   factored      S~_r = sum_i U[i,r] S_i    x~_r = sum_j V[j,r] x_j    M_r = x~_r S~_r^T
//                 y_a = sum_r W[a,r] M_r
//   mixed         z_a = [sum_b A_1[a,b] x_b, .., sum_b A_n[a,b] x_b]    y_a = [S_1 .. S_n] z_a
//   materialised  H = sum_i A_i (x) S_i    y = H x
//
// The backward passes are the same products with the factors in other roles: for dx, V and W change places
// and the blocks are transposed; for dS, U gives the output.

#include <ATen/ops/bmm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>

#include "ops/constants.h"
#include "ops/linear/linear.h"
#include "ops/map/bilinear_map.h"
#include "ops/map/choice.h"
#include "ops/map/prepared.h"

namespace quatrain::ops::composed {

namespace {

/// Sizes and constants of one call. x has `rows` rows of n components of p values, y of n components of m
/// values.
struct Frame {
  Versions versions;  // before anything is read
  int64_t rows, n, m, p;
  at::ScalarType dtype;
  Way way;
  bool real;        // the real layer: H is S
  at::Tensor A;     // (n, n, n)
  FactorTensors f;  // each (n, R); only for the factored way

  explicit Frame(const Versions& versions) : versions(versions) {}
};

Frame make_frame(const at::Tensor& x, const at::Tensor& S, const Call& call) {
  Frame frame(Versions{S, call});
  frame.n = S.size(0);
  frame.m = S.size(1);
  frame.p = S.size(2);
  frame.rows = rows_of(x);
  frame.dtype = call.compute_dtype(x);
  const algebra::Algebra* fixed = call.fixed();
  frame.way = plan(make_problem(S, call, frame.rows, frame.dtype), call.way);
  frame.real = fixed && fixed->n() == 1 && fixed->table(0, 0, 0) == 1;
  frame.A = fixed ? table_tensor(*fixed, frame.dtype, x.device()) : call.structure().to(frame.dtype);
  if (frame.way == Way::factored) frame.f = factor_tensors(call, frame.dtype, x.device());
  return frame;
}

/// (..., n q) -> (n, rows q): the components first.
at::Tensor components(const at::Tensor& x, const Frame& f, int64_t q) {
  return x.to(f.dtype).reshape({f.rows, f.n, q}).transpose(0, 1).reshape({f.n, f.rows * q});
}

/// (n, rows q) -> the sizes of `like` with the last axis n q.
at::Tensor joined(const at::Tensor& y, const Frame& f, int64_t q, const at::Tensor& like) {
  return y.view({f.n, f.rows, q}).transpose(0, 1).reshape(sizes_with(like, f.n * q));
}

/// R mixtures of n components: (n, R) and (n, rows q) -> (R, rows, q).
at::Tensor mixtures(const at::Tensor& factor, const at::Tensor& parts, const Frame& f, int64_t q) {
  return at::matmul(factor.t(), parts).view({factor.size(1), f.rows, q});
}

at::Tensor combined_weights(const at::Tensor& S, const Frame& f) {  // (R, m, p)
  return at::matmul(f.f.U.t(), S.to(f.dtype).reshape({f.n, f.m * f.p})).view({f.f.U.size(1), f.m, f.p});
}

at::Tensor stacked_weights(const at::Tensor& S, const Frame& f) {  // [S_1 .. S_n]: (m, n p)
  return S.to(f.dtype).transpose(0, 1).reshape({f.m, f.n * f.p});
}

at::Tensor expanded_weights(const at::Tensor& S, const Frame& f) {  // H: (n m, n p)
  if (f.real) return S.to(f.dtype).select(0, 0);
  return at::matmul(f.A.reshape({f.n, f.n * f.n}).t(), S.to(f.dtype).reshape({f.n, f.m * f.p}))
      .view({f.n, f.n, f.m, f.p})
      .transpose(1, 2)
      .reshape({f.n * f.m, f.n * f.p});
}

at::Tensor weights(const at::Tensor& S, const Call& call, const Frame& f) {
  const auto build = [&] {
    return f.way == Way::factored ? combined_weights(S, f)
           : f.way == Way::mixed  ? stacked_weights(S, f)
                                  : expanded_weights(S, f);
  };
  if (f.real && S.scalar_type() == f.dtype) return build();  // S itself: nothing to prepare
  return prepared(S, call, f.versions, {Form::composed, f.way, f.dtype}, build);
}

/// z: (rows n, n p), row (b, a) holding sum_j A[i, a, j] x_j at block i.
at::Tensor mixed_inputs(const at::Tensor& x, const Frame& f) {
  const at::Tensor by_row = f.A.transpose(0, 1).reshape({f.n * f.n, f.n});  // (a i, j)
  return at::matmul(by_row, x.to(f.dtype).reshape({f.rows, f.n, f.p})).view({f.rows * f.n, f.n * f.p});
}

at::Tensor with_bias(at::Tensor y, const Optional& bias, const Frame& f) {
  return given(bias) ? y.add_(bias->to(f.dtype)) : y;
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& S, const Optional& bias, const Call& call) {
  check_linear("linear", x, S, call);
  check_bias(bias, S);
  const Frame f = make_frame(x, S, call);
  const at::Tensor W = weights(S, call, f);
  switch (f.way) {
    case Way::factored: {
      const at::Tensor products = at::bmm(mixtures(f.f.V, components(x, f, f.p), f, f.p), W.transpose(1, 2));
      const at::Tensor y = at::matmul(f.f.W, products.view({products.size(0), f.rows * f.m}));
      return with_bias(joined(y, f, f.m, x), bias, f);
    }
    case Way::mixed:
      return with_bias(at::matmul(mixed_inputs(x, f), W.t()).view(sizes_with(x, f.n * f.m)), bias, f);
    default:
      return at::linear(x.to(f.dtype), W, given(bias) ? Optional(bias->to(f.dtype)) : std::nullopt);
  }
}

Gradients linear_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S, const Call& call,
                          Mask mask) {
  check_linear("linear_backward", x, S, call);
  check_grad(grad, x, S, call);
  if (mask[1] || mask[2]) mark_in_training(S);
  const Frame f = make_frame(x, S, call);
  const bool want_x = mask[0], want_S = mask[1], want_A = mask[2] && call.learned();
  at::Tensor dx, dS, dA;
  at::Tensor dH;  // (n m, n p), only where it is wanted
  const auto gradient_of_H = [&] {
    if (!dH.defined())
      dH = at::matmul(grad.to(f.dtype).reshape({f.rows, f.n * f.m}).t(),
                      x.to(f.dtype).reshape({f.rows, f.n * f.p}));
    return dH.view({f.n, f.m, f.n, f.p}).transpose(1, 2).reshape({f.n * f.n, f.m * f.p});  // blocks (a, b)
  };
  switch (f.way) {
    case Way::factored: {
      const at::Tensor g = mixtures(f.f.W, components(grad, f, f.m), f, f.m);  // (R, rows, m)
      if (want_x) {
        const at::Tensor products = at::bmm(g, combined_weights(S, f));  // (R, rows, p)
        dx = joined(at::matmul(f.f.V, products.view({products.size(0), f.rows * f.p})), f, f.p, x);
      }
      if (want_S) {
        const at::Tensor products =
            at::bmm(g.transpose(1, 2), mixtures(f.f.V, components(x, f, f.p), f, f.p));
        dS = at::matmul(f.f.U, products.view({products.size(0), f.m * f.p})).view({f.n, f.m, f.p});
      }
      break;
    }
    case Way::mixed: {
      const at::Tensor g = grad.to(f.dtype).reshape({f.rows * f.n, f.m});
      if (want_x || want_A) {
        const at::Tensor dz =
            at::matmul(g, stacked_weights(S, f)).view({f.rows, f.n * f.n, f.p});  // (b, a i, q)
        const at::Tensor by_row = f.A.transpose(0, 1).reshape({f.n * f.n, f.n});
        if (want_x) dx = at::matmul(by_row.t(), dz).view(sizes_with(x, f.n * f.p));
        if (want_A)
          dA = at::matmul(dz.transpose(0, 1).reshape({f.n * f.n, f.rows * f.p}), components(x, f, f.p).t())
                   .view({f.n, f.n, f.n})
                   .transpose(0, 1);
      }
      if (want_S) dS = at::matmul(g.t(), mixed_inputs(x, f)).view({f.m, f.n, f.p}).transpose(0, 1);
      break;
    }
    default:
      if (want_x) dx = at::matmul(grad.to(f.dtype), expanded_weights(S, f));
      if (want_S) dS = at::matmul(f.A.reshape({f.n, f.n * f.n}), gradient_of_H()).view({f.n, f.m, f.p});
  }
  if (want_A && !dA.defined())
    dA = at::matmul(S.to(f.dtype).reshape({f.n, f.m * f.p}), gradient_of_H().t()).view({f.n, f.n, f.n});
  const auto finished = [](const at::Tensor& t, const at::Tensor& like) {
    return t.defined() ? t.to(like.scalar_type()).contiguous() : t;
  };
  dx = finished(dx, x), dS = finished(dS, S);
  if (dA.defined()) dA = finished(call.structure_gradient(dA), *call.A);
  return {dx, dS, dA};
}

}  // namespace quatrain::ops::composed
