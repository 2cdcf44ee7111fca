#include "quatrain/nn/norm.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "nn/check.h"
#include "quatrain/layer_ops.h"

namespace quatrain::nn {

LayerNormImpl::LayerNormImpl(LayerNormOptions options) : options(options) {
  require(options.n() >= 1, "LayerNorm: n must be at least 1, got ", options.n());
  require_divisible("LayerNorm", "width", options.width(), options.per_component() ? options.n() : 1, "n");
  require_at_least_zero("LayerNorm", "eps", options.eps());
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

WhiteningNormImpl::WhiteningNormImpl(WhiteningNormOptions options) : options(options) {
  require(options.n() >= 1 && options.n() <= 64, "WhiteningNorm: n must be between 1 and 64, got ",
          options.n());
  require_divisible("WhiteningNorm", "channels", options.channels(), options.n(), "n");
  require_at_least_zero("WhiteningNorm", "eps", options.eps());
  require_probability("WhiteningNorm", "momentum", options.momentum());
  WhiteningNormImpl::reset();
}

void WhiteningNormImpl::reset() {
  const int64_t n = options.n(), units = options.channels() / n;
  weight = register_parameter("weight", torch::empty({n * (n + 1) / 2, units}));
  bias = register_parameter("bias", torch::empty({options.channels()}));
  running_mean = register_buffer("running_mean", torch::empty({options.channels()}));
  running_covariance = register_buffer("running_covariance", torch::empty({n, n, units}));
  reset_parameters();
}

void WhiteningNormImpl::reset_parameters() {
  reset_running_stats();
  const at::NoGradGuard no_grad;
  const int64_t n = options.n();
  weight.zero_();
  for (int64_t row = 0; row < n; ++row)
    weight.select(0, row * (row + 3) / 2).fill_(1 / std::sqrt(static_cast<double>(n)));
  bias.zero_();
}

void WhiteningNormImpl::reset_running_stats() {
  running_mean.zero_();
  running_covariance.zero_().diagonal().fill_(1);
}

void WhiteningNormImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::WhiteningNorm(" << options.channels() << ", n=" << options.n()
         << ", eps=" << options.eps() << ", momentum=" << options.momentum() << ")";
}

at::Tensor WhiteningNormImpl::forward(const at::Tensor& x) {
  return ops::whitening_norm(x, weight, bias, running_mean, running_covariance, options.n(), is_training(),
                             options.momentum(), options.eps());
}

}  // namespace quatrain::nn
