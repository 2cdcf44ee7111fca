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
  TORCH_ARG(double, eps) = 1e-5;
};

/// Layer norm over the last axis: real, over all components together (the default), or per component.
/// Parameters `weight` and `bias`, both (width). Shape: (..., width) -> the same.
class QUATRAIN_API LayerNormImpl : public torch::nn::Cloneable<LayerNormImpl> {
 public:
  explicit LayerNormImpl(LayerNormOptions options);
  void reset() override;
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  at::Tensor forward(const at::Tensor& x);

  LayerNormOptions options;
  at::Tensor weight;
  at::Tensor bias;
};
TORCH_MODULE(LayerNorm);

}  // namespace quatrain::nn
