#include "quatrain/nn/norm.h"

#include <torch/torch.h>

#include "nn/check.h"
#include "quatrain/layer_ops.h"

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
  const int64_t n = options.per_component() ? options.n() : 1;
  return ops::hypercomplex_layer_norm(x, weight, bias, n, options.eps());
}

}  // namespace quatrain::nn
