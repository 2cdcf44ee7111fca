// Convolutions composed of at::convolution, for every device and type:
//
//   factored      R convolutions of mixtures, as R groups of one, or by Winograd's transforms
//                 (winograd_composed.cpp)
//   materialised  H at each place of the kernel, then one real convolution

#include <ATen/ops/convolution.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros_like.h>

#include "ops/constants.h"
#include "ops/convolution/convolution.h"
#include "ops/map/prepared.h"

namespace quatrain::ops::composed {

namespace {

/// Without a request H is written out: on other devices and in other types a real convolution is the rival.
bool takes_factors(const at::Tensor& x, const ConvolutionCall& call) {
  if (x.numel() == 0 && call.map.rank() == 0) return false;  // there is nothing to compute
  TORCH_CHECK(
      call.map.way != Way::factored || call.map.rank() > 0,
      "convolution: the way 'factored' needs factors of the learned A (see decompose); pass them or take "
      "materialised");
  return call.map.way == Way::factored;
}

/// `outputs` mixtures of the first or second axis of t, which holds as many parts as `mixture` has columns.
at::Tensor mixed(const at::Tensor& mixture, const at::Tensor& t, int64_t axis) {
  const int64_t inputs = mixture.size(1), part = t.size(axis) / inputs;
  std::vector<int64_t> sizes = t.sizes().vec();
  sizes[static_cast<size_t>(axis)] = mixture.size(0) * part;
  const std::vector<int64_t> as_rows =
      axis == 0
          ? std::vector<int64_t>{inputs, -1}
          : std::vector<int64_t>{t.size(0), inputs, t.numel() / std::max<int64_t>(1, t.size(0) * inputs)};
  return at::matmul(mixture, t.reshape(as_rows)).reshape(sizes);
}

/// The R mixtures of F, one after the other, as the weights of R groups.
at::Tensor mixed_kernels(const at::Tensor& F, const at::Tensor& U) {
  return mixed(U.t(), F.flatten(0, 1), 0);
}

Form form_of(const ConvolutionCall& call, Way way, at::ScalarType dtype) {
  return {
      .reader = Form::composed, .way = way, .dtype = dtype, .read_in = dtype, .geometry = geometry_of(call)};
}

}  // namespace

at::Tensor convolution(const at::Tensor& x, const at::Tensor& F, const Optional& bias,
                       const ConvolutionCall& call) {
  check_convolution("convolution", x, F, call);
  check_convolution_bias(bias, F, call);
  const Versions versions(F, call.map);
  const at::ScalarType dtype = call.map.compute_dtype(x);
  if (!takes_factors(x, call)) {
    const at::Tensor H = prepared(F, call.map, versions, form_of(call, Way::materialised, dtype), [&] {
      const at::Tensor kernel = expanded_kernel(F, call).to(dtype);
      // What is kept lies as oneDNN wants it for few pictures.
      return call.map.constant ? in_order(kernel, format_of(x)) : kernel;
    });
    return in_order(convolution_with(H, x, F.size(0), bias, call), format_of(x));
  }
  at::Tensor y;
  if (const int64_t m = winograd_tile(x, F, call)) {
    y = run_winograd(x.to(dtype), F, known_result_sizes(x, F, call), true, m, call);
  } else {
    const FactorTensors f = factor_tensors(call.map, dtype, x.device());
    const at::Tensor kernels = prepared(F, call.map, versions, form_of(call, Way::factored, dtype),
                                        [&] { return mixed_kernels(F.to(dtype), f.U); });
    y = mixed(
        f.W,
        at::convolution(mixed(f.V.t(), x.to(dtype), 1), kernels, std::nullopt, call.stride, call.padding,
                        call.dilation, call.transposed, call.output_padding, f.U.size(1) * call.groups),
        1);
  }
  if (given(bias)) {
    std::vector<int64_t> sizes(static_cast<size_t>(x.dim()) - 1, 1);
    sizes[0] = bias->size(0);
    y.add_(bias->to(dtype).view(sizes));
  }
  return in_order(y, format_of(x));
}

Gradients convolution_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                               const ConvolutionCall& call, Mask mask) {
  check_convolution("convolution_backward", x, F, call);
  check_convolution_grad(grad, x, F, call);
  mask[2] = mask[2] && call.map.learned();
  if (mask[1] || mask[2]) mark_in_training(F);
  at::Tensor dx, dF, dA;
  const at::ScalarType dtype = call.map.compute_dtype(x);
  const bool factored = takes_factors(x, call) && !mask[2];
  if (const int64_t m = factored ? winograd_tile(x, F, call) : 0) {
    const at::Tensor x_ = x.to(dtype), g = grad.to(dtype);
    if (mask[0]) dx = run_winograd(g, F, x.sizes(), false, m, call);
    if (mask[1])
      dF = winograd_weight_gradient(call.transposed ? g : x_, call.transposed ? x_ : g, F, m, call);
  } else if (factored) {
    const FactorTensors f = factor_tensors(call.map, dtype, x.device());
    const auto [dx_, dF_] =
        gradients_with(mixed_kernels(F.to(dtype), f.U), mixed(f.W.t(), grad.to(dtype), 1),
                       mixed(f.V.t(), x.to(dtype), 1), f.U.size(1) * call.groups, mask[0], mask[1], call);
    if (mask[0]) dx = mixed(f.V, dx_, 1);
    if (mask[1]) dF = mixed(f.U, dF_, 0).view(F.sizes());
  } else {
    std::tie(dx, dF, dA) = traced::convolution_backward(grad, x, F, call, mask);
  }
  if (mask[0]) dx = in_order(dx.to(x.scalar_type()), format_of(x));
  if (mask[1]) dF = dF.to(F.scalar_type()).contiguous();
  if (mask[2]) dA = dA.contiguous();
  return {dx, dF, dA};
}

}  // namespace quatrain::ops::composed
