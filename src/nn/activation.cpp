#include "quatrain/nn/activation.h"

#include <torch/torch.h>

#include <array>
#include <utility>

#include "nn/enum_names.h"

namespace quatrain::nn {

namespace {

using Entry = std::pair<ActivationFunction, const char*>;

// Captureless lambdas, because ATen's functions have default arguments.
constexpr std::array<Entry, 13> kActivations{{
    {[](const at::Tensor& x) { return x; }, "identity"},
    {[](const at::Tensor& x) { return at::relu(x); }, "relu"},
    {[](const at::Tensor& x) { return at::gelu(x); }, "gelu"},
    {[](const at::Tensor& x) { return at::gelu(x, "tanh"); }, "gelu_tanh"},
    {[](const at::Tensor& x) { return at::tanh(x); }, "tanh"},
    {[](const at::Tensor& x) { return at::sigmoid(x); }, "sigmoid"},
    {[](const at::Tensor& x) { return at::silu(x); }, "silu"},
    {[](const at::Tensor& x) { return at::elu(x); }, "elu"},
    {[](const at::Tensor& x) { return at::selu(x); }, "selu"},
    {[](const at::Tensor& x) { return at::leaky_relu(x); }, "leaky_relu"},
    {[](const at::Tensor& x) { return at::softplus(x); }, "softplus"},
    {[](const at::Tensor& x) { return at::hardtanh(x); }, "hardtanh"},
    {[](const at::Tensor& x) { return at::mish(x); }, "mish"},
}};

}  // namespace

ActivationFunction activation(std::string_view name) {
  return parse_in(kActivations, "activation", name);
}

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const auto& [function, name] : kActivations) names.emplace_back(name);
  return names;
}

ActivationImpl::ActivationImpl(std::string name) : name_(std::move(name)), function_(activation(name_)) {}

void ActivationImpl::reset() {}

void ActivationImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::Activation(" << name_ << ")";
}

at::Tensor ActivationImpl::forward(const at::Tensor& x) {
  return function_(x);
}

}  // namespace quatrain::nn
