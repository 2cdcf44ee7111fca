#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <string>

#include "quatrain/api.h"
#include "quatrain/layer_ops.h"

namespace quatrain::nn {

using ops::activation;
using ops::activation_names;
using ops::ActivationFunction;
using ops::overwriting_activation;

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
