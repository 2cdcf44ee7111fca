#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::nn {

/// A split activation: a real function applied to every component (QRNN (7)).
using ActivationFunction = at::Tensor (*)(const at::Tensor&);

/// The function of a name: identity, relu, gelu, gelu_tanh, tanh, sigmoid, silu, elu, selu, leaky_relu,
/// softplus, hardtanh, mish. An unknown name is an error that lists the known ones.
QUATRAIN_API ActivationFunction activation(std::string_view name);
/// The known names, in the order above.
QUATRAIN_API std::vector<std::string> activation_names();

/// A split activation as a module. Shape: any -> the same.
class QUATRAIN_API ActivationImpl : public torch::nn::Cloneable<ActivationImpl> {
 public:
  explicit ActivationImpl(std::string name);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  at::Tensor forward(const at::Tensor& x);

 private:
  std::string name_;
  ActivationFunction function_;
};
TORCH_MODULE(Activation);

}  // namespace quatrain::nn
