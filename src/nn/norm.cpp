#include "quatrain/nn/norm.h"

#include <torch/torch.h>

#include "nn/check.h"

namespace quatrain::nn {

LayerNormImpl::LayerNormImpl(LayerNormOptions options) : options(options) {
  require(options.n() >= 1, "LayerNorm: n must be at least 1, got ", options.n());
  require_divisible("LayerNorm", "width", options.width(), options.per_component() ? options.n() : 1, "n");
  LayerNormImpl::reset();
}

void LayerNormImpl::reset() {
  weight = register_parameter("weight", torch::empty({options.width()}));
  bias = register_parameter("bias", torch::empty({options.width()}));
  reset_parameters();
}

void LayerNormImpl::reset_parameters() {
  const at::NoGradGuard no_grad;
  weight.fill_(1);
  bias.zero_();
}

void LayerNormImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::LayerNorm(" << options.width();
  if (options.per_component()) stream << ", per_component, n=" << options.n();
  stream << ")";
}

at::Tensor LayerNormImpl::forward(const at::Tensor& x) {
  if (!options.per_component() || options.n() == 1)
    return at::layer_norm(x, {options.width()}, weight, bias, options.eps());
  const int64_t m = options.width() / options.n();
  const at::Tensor normed = at::layer_norm(x.unflatten(-1, {options.n(), m}), {m}, {}, {}, options.eps());
  return normed.flatten(-2) * weight + bias;
}

}  // namespace quatrain::nn
