#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include "quatrain/api.h"

namespace quatrain::nn {

struct QUATRAIN_API LayerNormOptions {
  LayerNormOptions(int64_t width) : width_(width) {}
  /// Size of the last axis.
  TORCH_ARG(int64_t, width);
  /// Number of components on it.
  TORCH_ARG(int64_t, n) = 1;
  /// Each component is normalised separately, over its width/n values, instead of all together.
  TORCH_ARG(bool, per_component) = false;
  /// Added to the variance; a finite number that is at least 0.
  TORCH_ARG(double, eps) = 1e-5;
};

/// Layer norm over the last axis: real, over all components together (the default), or per component.
/// Parameters `weight` and `bias`, both (width). Shape: (..., width) -> the same.
class QUATRAIN_API LayerNormImpl : public torch::nn::Cloneable<LayerNormImpl> {
 public:
  /// Throws std::invalid_argument for a size that n does not divide, and for numbers out of range.
  explicit LayerNormImpl(LayerNormOptions options);
  void reset() override;
  /// weight one, bias zero.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  at::Tensor forward(const at::Tensor& x);

  LayerNormOptions options;
  at::Tensor weight;
  at::Tensor bias;
};
TORCH_MODULE(LayerNorm);

struct QUATRAIN_API WhiteningNormOptions {
  WhiteningNormOptions(int64_t channels) : channels_(channels) {}
  /// Size of axis 1; n divides it.
  TORCH_ARG(int64_t, channels);
  /// Number of components on it.
  TORCH_ARG(int64_t, n) = 4;
  /// Added to the variances; a finite number that is at least 0.
  TORCH_ARG(double, eps) = 1e-4;
  /// The share of a batch in the running statistics, from 0 to 1.
  TORCH_ARG(double, momentum) = 0.1;
};

/// Batch norm that whitens the n components of each unit together, the quaternion batch norm of Gaudet and
/// Maida (2018) for any n: mean 0, covariance I, then a symmetric matrix and a shift (ops::whitening_norm).
/// At n = 1 it is torch's batch norm of the same eps.
///
/// Parameters: `weight` (n (n + 1) / 2, channels / n), the lower triangles of the symmetric matrices row by
/// row, I / sqrt(n) at the start, so that a number has the mean square 1; `bias` (channels), zero. Buffers:
/// `running_mean` (channels), `running_covariance` (n, n, channels / n). Shape: (B, channels, ...) -> the
/// same, with any number of spatial axes. Computed in float32 at least.
class QUATRAIN_API WhiteningNormImpl : public torch::nn::Cloneable<WhiteningNormImpl> {
 public:
  /// Throws std::invalid_argument for a size that n does not divide, and for numbers out of range.
  explicit WhiteningNormImpl(WhiteningNormOptions options);
  void reset() override;
  /// weight I / sqrt(n), bias zero, and the running statistics as reset_running_stats() does.
  void reset_parameters();
  /// Mean zero, covariance I.
  void reset_running_stats();
  void pretty_print(std::ostream& stream) const override;
  /// Throws c10::Error while training where there are fewer than 2 values of each channel, and
  /// c10::LinAlgError for a covariance without a Cholesky factor.
  at::Tensor forward(const at::Tensor& x);

  WhiteningNormOptions options;
  at::Tensor weight;
  at::Tensor bias;
  at::Tensor running_mean;
  at::Tensor running_covariance;
};
TORCH_MODULE(WhiteningNorm);

}  // namespace quatrain::nn
