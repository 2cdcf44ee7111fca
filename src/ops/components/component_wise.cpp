// Split activations and layer norm over the components of hypercomplex numbers, and the mean over
// words: composed of ATen calls.

#include <ATen/TensorOperators.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/selu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/tanh.h>
#include <torch/library.h>

#include <stdexcept>

#include "quatrain/layer_ops.h"
#include "support/enum_names.h"

namespace quatrain::ops {

namespace {

// Captureless lambdas, because ATen's functions have default arguments.
constexpr EnumNames<ActivationFunction, 13> kActivations{{
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

constexpr EnumNames<ActivationFunction, 3> kOverwriting{{
    {[](const at::Tensor& x) { return x.relu_(); }, "relu"},
    {[](const at::Tensor& x) { return x.tanh_(); }, "tanh"},
    {[](const at::Tensor& x) { return x.sigmoid_(); }, "sigmoid"},
}};

// The result of an operator must be no alias of its input.
at::Tensor split_activation(const at::Tensor& x, std::string_view name) {
  const at::Tensor y = activation(name)(x);
  return y.is_same(x) ? x.clone() : y;
}

}  // namespace

ActivationFunction activation(std::string_view name) {
  return parse_name(kActivations, "activation", name);
}

ActivationFunction overwriting_activation(std::string_view name) {
  const ActivationFunction* const function = find_value(kOverwriting, name);
  return function ? *function : activation(name);
}

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const auto& [function, name] : kActivations) names.emplace_back(name);
  return names;
}

at::Tensor hypercomplex_layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                                   int64_t n, double eps) {
  const c10::SymInt width = weight.sym_numel();
  TORCH_CHECK(
      weight.dim() == 1 && bias.sym_sizes() == weight.sym_sizes() && x.dim() >= 1 &&
          x.sym_size(-1) == width && n >= 1 && width % n == 0,
      "layer_norm: x must be (..., width), weight and bias (width), and n must divide the width, got ",
      x.sym_sizes(), ", ", weight.sym_sizes(), ", ", bias.sym_sizes(), " and n = ", n);
  if (n == 1) return at::layer_norm_symint(x, {width}, weight, bias, eps);
  const c10::SymInt m = width / n;
  const at::Tensor normed = at::layer_norm_symint(x.unflatten_symint(-1, {n, m}), {m}, {}, {}, eps);
  return (normed.flatten(-2) * weight + bias).to(normed.scalar_type());  // as torch's, also of wider weights
}

at::Tensor masked_mean(const at::Tensor& x, const at::Tensor& padding) {
  TORCH_CHECK(x.dim() == 3 && padding.dim() == 2 && padding.scalar_type() == at::kBool &&
                  padding.sym_size(0) == x.sym_size(0) && padding.sym_size(1) == x.sym_size(1),
              "masked_mean: x must be (batch, length, width) and padding bool (batch, length), got ",
              x.sym_sizes(), " and ", padding.scalar_type(), " ", padding.sym_sizes());
  const at::Tensor counts = padding.logical_not().sum(1, /*keepdim=*/true).clamp_min(1);
  const at::Tensor sum = x.masked_fill(padding.unsqueeze(-1), 0).sum(1);
  return sum / counts.to(sum.scalar_type());
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def("split_activation(Tensor x, str name) -> Tensor", &split_activation);
  m.def("activation_names() -> str[]", &activation_names);
  m.def("hypercomplex_layer_norm(Tensor x, Tensor weight, Tensor bias, int n=1, float eps=1e-05) -> Tensor",
        &hypercomplex_layer_norm);
  m.def("masked_mean(Tensor x, Tensor padding) -> Tensor", &masked_mean);
}

// vmap sees what they are composed of.
TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("split_activation", &split_activation);
  m.impl("hypercomplex_layer_norm", &hypercomplex_layer_norm);
  m.impl("masked_mean", &masked_mean);
}

}  // namespace quatrain::ops
