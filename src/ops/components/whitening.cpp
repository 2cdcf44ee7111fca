// Batch norm that whitens the components of hypercomplex numbers: composed of ATen calls.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_cholesky.h>
#include <ATen/ops/linalg_solve_triangular.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "ops/order.h"
#include "quatrain/layer_ops.h"

namespace quatrain::ops {

namespace {

using Optional = std::optional<at::Tensor>;
constexpr int64_t kMostComponents = 64;

// (n c) with the components side by side -> (c, n, 1).
at::Tensor by_unit(const at::Tensor& channels, int64_t n, at::ScalarType type) {
  return channels.to(type).unflatten_symint(0, {n, channels.sym_size(0) / n}).t().unsqueeze(-1);
}

// The rows of lower triangles, (n (n + 1) / 2, c), as symmetric matrices (c, n, n).
at::Tensor symmetric(const at::Tensor& triangles, int64_t n) {
  const at::Tensor place = at::arange(n, triangles.options().dtype(at::kLong));
  const at::Tensor row = at::maximum(place.unsqueeze(1), place),
                   column = at::minimum(place.unsqueeze(1), place);
  const at::Tensor index = (row * (row + 1)).div(2, "floor") + column;
  return triangles.index_select(0, index.flatten()).t().unflatten(-1, {n, n});
}

void check(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const Optional& mean,
           const Optional& covariance, int64_t n, bool training) {
  TORCH_CHECK(n >= 1 && n <= kMostComponents, "whitening_norm: n must be between 1 and ", kMostComponents,
              ", got ", n);
  TORCH_CHECK(x.dim() >= 2 && x.sym_size(1) % n == 0 && x.is_floating_point(),
              "whitening_norm: x must be floating point (batch, n c, ...) with n = ", n, ", got ",
              x.scalar_type(), " ", x.sym_sizes());
  const c10::SymInt channels = x.sym_size(1), units = channels / n;
  TORCH_CHECK(weight.dim() == 2 && weight.sym_size(0) == n * (n + 1) / 2 && weight.sym_size(1) == units &&
                  bias.dim() == 1 && bias.sym_size(0) == channels,
              "whitening_norm: weight must be (n (n + 1) / 2, c) = (", n * (n + 1) / 2, ", ", units,
              ") and bias (n c) = (", channels, "), got ", weight.sym_sizes(), " and ", bias.sym_sizes());
  TORCH_CHECK(mean.has_value() == covariance.has_value() && (training || mean),
              "whitening_norm: needs a running mean and a running covariance, or while training neither");
  if (mean)
    TORCH_CHECK(mean->dim() == 1 && mean->sym_size(0) == channels && covariance->dim() == 3 &&
                    covariance->sym_size(0) == n && covariance->sym_size(1) == n &&
                    covariance->sym_size(2) == units,
                "whitening_norm: the running mean must be (n c) = (", channels,
                ") and the running covariance (n, n, c) = (", n, ", ", n, ", ", units, "), got ",
                mean->sym_sizes(), " and ", covariance->sym_sizes());
}

at::Tensor cholesky(const at::Tensor& covariance, int64_t n, double eps) {
  try {
    return at::linalg_cholesky(covariance);
  } catch (const c10::LinAlgError&) {
    C10_THROW_ERROR(LinAlgError,
                    c10::str("whitening_norm: the covariance of the n = ", n,
                             " components of a unit has no Cholesky factor with eps = ", eps,
                             ": values are not finite, or the components depend on each other (take a "
                             "larger eps or a larger batch)"));
  }
}

void move_towards(at::Tensor running, const at::Tensor& batch, double momentum) {
  const at::NoGradGuard no_grad;
  running.lerp_(batch.detach().to(running.scalar_type()), momentum);
}

at::Tensor whitening_norm_op(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                             const Optional& running_mean, const Optional& running_covariance, int64_t n,
                             bool training, double momentum, double eps) {
  // Squares are not of half the digits, whatever the products around them.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  check(x, weight, bias, running_mean, running_covariance, n, training);
  const at::ScalarType type = c10::isReducedFloatingType(x.scalar_type()) ? at::kFloat : x.scalar_type();
  c10::SymInt pixels = 1;
  for (int64_t axis = 2; axis < x.dim(); ++axis) pixels *= x.sym_size(axis);
  const c10::SymInt images = x.sym_size(0), units = x.sym_size(1) / n, values = images * pixels;
  TORCH_CHECK(!training || values >= 2,
              "whitening_norm: training needs at least 2 values of each channel, got x ", x.sym_sizes());

  const at::Tensor numbers = x.to(type)
                                 .reshape_symint({images, n, units, pixels})
                                 .permute({2, 1, 0, 3})
                                 .reshape_symint({units, n, values});
  const at::Tensor mean = training ? numbers.mean(-1, true) : by_unit(*running_mean, n, type);
  const at::Tensor centred = numbers - mean;
  const at::Tensor covariance = training ? at::bmm(centred, centred.transpose(1, 2)) / values
                                         : running_covariance->to(type).permute({2, 0, 1});
  const at::Tensor L = cholesky(covariance + eps * at::eye(n, covariance.options()), n, eps);
  if (training && running_mean) {  // a batch that was refused has no part in them
    move_towards(*running_mean, mean.squeeze(-1).t().flatten(), momentum);
    move_towards(*running_covariance, (covariance * values / (values - 1)).permute({1, 2, 0}), momentum);
  }
  // gamma L^-1, one matrix a unit
  const at::Tensor map =
      at::linalg_solve_triangular(L, symmetric(weight.to(type), n), /*upper=*/false, /*left=*/false);
  const at::Tensor y =
      at::baddbmm(by_unit(bias, n, type), map, centred).reshape_symint({units, n, images, pixels});
  const bool channels_last = format_of(x) != at::MemoryFormat::Contiguous;
  const at::Tensor laid = channels_last ? y.permute({2, 3, 1, 0}).flatten(2).transpose(1, 2)
                                        : y.permute({2, 1, 0, 3}).flatten(1, 2);
  return laid.reshape_symint(x.sym_sizes()).to(x.scalar_type());
}

Optional optional(const at::Tensor& tensor) {
  return tensor.defined() ? Optional(tensor) : std::nullopt;
}

}  // namespace

at::Tensor whitening_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                          const at::Tensor& running_mean, const at::Tensor& running_covariance, int64_t n,
                          bool training, double momentum, double eps) {
  return whitening_norm_op(x, weight, bias, optional(running_mean), optional(running_covariance), n, training,
                           momentum, eps);
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def(
      "whitening_norm(Tensor x, Tensor weight, Tensor bias, Tensor(a!)? running_mean, "
      "Tensor(b!)? running_covariance, int n, bool training, float momentum=0.1, float eps=0.0001) -> Tensor",
      &whitening_norm_op);
}

// vmap sees what it is composed of.
TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("whitening_norm", &whitening_norm_op);
}

}  // namespace quatrain::ops
