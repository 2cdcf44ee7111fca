#include "quatrain/nn/activation.h"

#include <torch/types.h>

#include <utility>

namespace quatrain::nn {

ActivationImpl::ActivationImpl(std::string name) : name_(std::move(name)), function_(activation(name_)) {}

void ActivationImpl::reset() {}

void ActivationImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::Activation(" << name_ << ")";
}

at::Tensor ActivationImpl::forward(const at::Tensor& x) {
  return function_(x);
}

}  // namespace quatrain::nn
