#include "quatrain/nn/linear.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "nn/check.h"

namespace quatrain::nn {

LinearImpl::LinearImpl(LinearOptions options) : options(std::move(options)) {
  const int64_t n = this->options.algebra().n;
  require_divisible("linear", "in_features", this->options.in_features(), n, "n");
  const int64_t maps = this->options.maps();
  require(maps >= 1, "linear: maps must be at least 1, got ", maps);
  require_divisible("linear", "out_features", this->options.out_features(), n * maps,
                    maps > 1 ? "n * maps" : "n");
  LinearImpl::reset();
}

void LinearImpl::reset() {
  WeightOptions weight;
  weight.algebra = options.algebra();
  weight.in_features = options.in_features();
  weight.out_features = options.out_features();
  weight.maps = options.maps();
  weight.initialiser = options.initialiser();
  make(*this, std::move(weight));
  if (options.bias()) bias = register_parameter("bias", torch::zeros({options.out_features()}));
}

void LinearImpl::reset_parameters() {
  draw();
  const at::NoGradGuard no_grad;
  if (bias.defined()) bias.zero_();
}

void LinearImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::Linear(" << options.in_features() << " -> " << options.out_features()
         << ", algebra=" << options.algebra().text() << ", bias=" << (options.bias() ? "true" : "false")
         << ")";
}

at::Tensor LinearImpl::forward(const at::Tensor& x) {
  const Operands weight = operands(is_training());
  return ops::linear(x, weight.S, bias, weight.product, options.way(), std::nullopt, weight.constant);
}

}  // namespace quatrain::nn
