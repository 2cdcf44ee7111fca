// The nearest hypercomplex weights of a real matrix.
//
// R holds a block of H in each row, (a, b) -> H[a k/n + p, b d/n + c] at (p, c). Then H = sum_i A_i (x) S_i
// reads R = sum_i vec(A_i) vec(S_i)^T: least squares in S where the A_i are given, the best approximation of
// rank n where they are free (Van Loan and Pitsianis, 1993).

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>

#include "ops/constants.h"
#include "ops/structure/epsilon.h"
#include "quatrain/ops.h"

namespace quatrain::ops {
namespace {

using Tensors = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

algebra::Spec parse(std::string_view text) {
  try {
    return algebra::Spec::parse(text);
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK_VALUE(false, "nearest: ", error.what());
  }
}

algebra::Spec check(const at::Tensor& H, std::string_view text) {
  const algebra::Spec spec = parse(text);
  TORCH_CHECK_VALUE(spec.trained_rank == 0, "nearest: trained factors (", text,
                    ") have no nearest weights in closed form: take a learned A, such as phm(", spec.n, ")");
  TORCH_CHECK_VALUE(H.dim() == 2, "nearest: H must be a matrix (out, in), got ", H.sizes());
  TORCH_CHECK_TYPE(H.is_floating_point(), "nearest: H must be real floating point, got ", H.scalar_type());
  for (const int64_t axis : {0, 1})
    TORCH_CHECK_VALUE(H.size(axis) % spec.n == 0, "nearest: the sizes of H must be divisible by n = ", spec.n,
                      " (", text, "), got ", H.sizes());
  return spec;
}

// (out, in) -> (n n, out/n in/n).
at::Tensor blocks_to_rows(const at::Tensor& H, int64_t n) {
  const int64_t k = H.size(0) / n, d = H.size(1) / n;
  return H.reshape({n, k, n, d}).permute({0, 2, 1, 3}).reshape({n * n, k * d});
}

constexpr double kNoise = 1e-13;  // of singular values, relative to the first

struct Summands {
  at::Tensor A;  // (n, n n)
  at::Tensor S;  // (n, out/n in/n)
};

// The pseudo-inverse of the Gram matrix serves every table, also one with dependent or zero slices: of the
// weights that are equally near it gives the smallest.
at::Tensor project(const at::Tensor& R, const at::Tensor& A) {
  const at::Tensor gram = A.matmul(A.t());
  return at::linalg_pinv(gram, /*rcond=*/1e-12, /*hermitian=*/true).matmul(A).matmul(R);
}

// `unit`: the relative precision of the type that the result will have.
Summands factor(const at::Tensor& R, int64_t n, double unit) {
  // Zero columns let even n x n matrices, whose blocks are single numbers, have n directions.
  const int64_t missing = n - R.size(1);
  const at::Tensor wide = missing > 0 ? at::constant_pad_nd(R, {0, missing}) : R;
  const auto [U, sigma, Vt] = at::linalg_svd(wide, /*full_matrices=*/false);
  const at::Tensor largest = sigma.narrow(0, 0, n), directions = U.narrow(1, 0, n).t();
  // Where H is a sum of fewer terms, a spare one keeps a direction of its own and a zero S: H stays as it is,
  // and training has a gradient for it, which it had not with both at zero.
  const at::Tensor first = largest[0];
  const at::Tensor spare = largest.le(first * std::max(unit, kNoise));
  const at::Tensor start =
      at::where(first.eq(0), at::full_like(first, std::sqrt(static_cast<double>(n))), first.sqrt());
  const at::Tensor half = largest.sqrt();
  Summands result;
  result.A = at::where(spare, start, half).unsqueeze(1) * directions;
  result.S = (half.masked_fill(spare, 0).unsqueeze(1) * Vt.narrow(0, 0, n)).narrow(1, 0, R.size(1));
  return result;
}

Tensors nearest_any(const at::Tensor& H, std::string_view text) {
  const algebra::Spec spec = check(H, text);
  const int64_t n = spec.n, k = H.size(0) / n, d = H.size(1) / n;
  const at::Tensor values = H.to(at::kDouble);
  TORCH_CHECK_VALUE(values.isfinite().all().item<bool>(), "nearest: H must be finite, got nan or inf in ",
                    H.sizes());
  const at::Tensor R = blocks_to_rows(values, n);
  Summands found;
  if (spec.learned) {
    found = R.numel() > 0 ? factor(R, n, epsilon(H.scalar_type()))
                          : Summands{at::ones({n, n * n}, R.options()), at::empty({n, 0}, R.options())};
  } else {
    found.A = table_tensor(algebra::get(spec.name), at::kDouble, H.device()).view({n, n * n});
    found.S = project(R, found.A);
  }
  const at::Tensor A = found.A.to(H.scalar_type(), false, /*copy=*/true);
  const at::Tensor S = found.S.to(H.scalar_type());
  // The error of what is returned, its rounding included.
  const at::Tensor norm = R.norm(), rest = (R - A.to(at::kDouble).t().matmul(S.to(at::kDouble))).norm();
  const at::Tensor error = at::where(norm.eq(0), rest, rest / norm);
  return {S.reshape({n, k, d}).contiguous(), A.reshape({n, n, n}).contiguous(), error};
}

Tensors nearest_meta(const at::Tensor& H, std::string_view text) {
  const algebra::Spec spec = check(H, text);
  const int64_t n = spec.n;
  return {H.new_empty({n, H.size(0) / n, H.size(1) / n}), H.new_empty({n, n, n}),
          H.new_empty({}, at::kDouble)};
}

// Not differentiable: what comes out is a start, with no graph behind it.
Tensors nearest_autograd(const at::Tensor& H, std::string_view text) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::nearest", "")
                             .typed<Tensors(const at::Tensor&, std::string_view)>();
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  return op.call(H.detach(), text);
}

}  // namespace

Nearest nearest(const at::Tensor& H, std::string_view algebra) {
  const at::NoGradGuard no_grad;
  const auto [S, A, error] = nearest_autograd(H, algebra);
  return {S, A, error.item<double>()};
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def("nearest(Tensor H, str algebra) -> (Tensor S, Tensor A, Tensor error)");
}
TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("nearest", &nearest_any);
}
TORCH_LIBRARY_IMPL(quatrain, Meta, m) {
  m.impl("nearest", &nearest_meta);
}
TORCH_LIBRARY_IMPL(quatrain, Autograd, m) {
  m.impl("nearest", &nearest_autograd);
}

}  // namespace quatrain::ops
