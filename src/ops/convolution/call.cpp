// The arguments of a convolution, checked.

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <limits>

#include "ops/convolution/convolution.h"
#include "ops/transforms.h"

namespace quatrain::ops {

namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();  // products of two do not overflow

/// A list as one value a spatial axis.
std::vector<int64_t> for_each_axis(const char* argument, at::IntArrayRef given, int64_t axes, int64_t least) {
  TORCH_CHECK(given.size() == 1 || static_cast<int64_t>(given.size()) == axes, "convolution: ", argument,
              " must have one value, or one for each of the ", axes, " spatial axes of F, got ", given);
  for (const int64_t value : given)
    TORCH_CHECK(value >= least && value <= kMost, "convolution: ", argument, " must be at least ", least,
                " and at most ", kMost, ", got ", given);
  return given.size() == 1 ? std::vector<int64_t>(static_cast<size_t>(axes), given[0]) : given.vec();
}

/// Pixels of the result along a spatial axis.
c10::SymInt result_size(const at::Tensor& x, const at::Tensor& F, const ConvolutionCall& call, int64_t axis) {
  const auto i = static_cast<size_t>(axis);
  const c10::SymInt pixels = x.sym_size(2 + axis), reach = (F.sym_size(3 + axis) - 1) * call.dilation[i];
  if (call.transposed)
    return (pixels - 1) * call.stride[i] - 2 * call.padding[i] + reach + call.output_padding[i] + 1;
  // Rounded towards minus infinity only where there is nothing to round.
  return (pixels + 2 * call.padding[i] - reach - 1) / call.stride[i] + 1;
}

}  // namespace

ConvolutionCall make_convolution_call(const at::Tensor& F, Call map, at::IntArrayRef stride,
                                      at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                                      at::IntArrayRef output_padding, int64_t groups, Winograd winograd) {
  const int64_t axes = F.dim() - 3;
  TORCH_CHECK(axes >= 1 && axes <= 3,
              "convolution: F must have the shape (n, out_channels / n, in_channels / (n groups), kernel...) "
              "with 1 to 3 spatial axes, got ",
              F.sym_sizes());
  TORCH_CHECK(groups >= 1 && groups <= kMost, "convolution: groups must be from 1 to ", kMost, ", got ",
              groups);
  ConvolutionCall call;
  call.map = std::move(map);
  call.stride = for_each_axis("stride", stride, axes, 1);
  call.padding = for_each_axis("padding", padding, axes, 0);
  call.dilation = for_each_axis("dilation", dilation, axes, 1);
  call.output_padding = for_each_axis("output_padding", output_padding, axes, 0);
  call.transposed = transposed, call.groups = groups, call.winograd = winograd;
  for (size_t i = 0; i < call.output_padding.size(); ++i)
    TORCH_CHECK(call.output_padding[i] == 0 || transposed,
                "convolution: output_padding is for a transposed convolution, got ", output_padding);
  for (size_t i = 0; transposed && i < call.output_padding.size(); ++i)
    TORCH_CHECK(call.output_padding[i] < std::max(call.stride[i], call.dilation[i]),
                "convolution: output_padding must be smaller than stride or dilation, got ", output_padding);
  return call;
}

at::DimVector geometry_of(const ConvolutionCall& call) {
  at::DimVector geometry{call.transposed, call.groups};
  // These decide which places of a kernel a phase has (direct_view.h).
  if (call.transposed)
    for (const auto* list : {&call.stride, &call.padding, &call.dilation})
      geometry.append(list->begin(), list->end());
  return geometry;
}

void check_convolution(const char* function, const at::Tensor& x, const at::Tensor& F,
                       const ConvolutionCall& call) {
  check_blocks(function, "F", F, call.map);
  check_values(function, "x", x);
  for (int64_t axis = 1; axis < F.dim(); ++axis)
    TORCH_CHECK(F.sym_size(axis) >= 1 && F.sym_size(axis) <= kMost, function, ": F must have from 1 to ",
                kMost, " values along each axis, got ", F.sym_sizes());
  TORCH_CHECK(F.sym_size(1) % call.groups == 0, function, ": groups must divide ",
              call.transposed ? "in_channels / n" : "out_channels / n", " = F.size(1) = ", F.sym_size(1),
              ", got ", call.groups);
  TORCH_CHECK(x.dim() == call.axes() + 2, function, ": x must have the shape (batch, channels, ",
              call.axes() == 1   ? "length"
              : call.axes() == 2 ? "height, width"
                                 : "depth, height, width",
              ") for F ", F.sym_sizes(), ", got ", x.sym_sizes());
  const c10::SymInt channels = F.sym_size(0) * call.units_in(F);
  TORCH_CHECK(x.sym_size(1) == channels, function, ": x must have in_channels = ", channels,
              call.transposed ? " (n * F.size(1)), got " : " (n * groups * F.size(2)), got ", x.sym_size(1));
  TORCH_CHECK(x.device() == F.device(), function, ": x is on ", x.device(), ", F on ", F.device(),
              "; move one");
  TORCH_CHECK(call.map.dtype || x.scalar_type() == F.scalar_type(), function, ": x is ", x.scalar_type(),
              ", F ", F.scalar_type(), "; convert one, or give the dtype to compute in");
  for (int64_t axis = 0; axis < call.axes(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    const c10::SymInt pixels = x.sym_size(2 + axis),
                      reach = (F.sym_size(3 + axis) - 1) * call.dilation[i] + 1;
    TORCH_CHECK(pixels >= 1, function, ": x must have a pixel or more along each spatial axis, got ",
                x.sym_sizes());
    if (call.transposed) {
      TORCH_CHECK(result_size(x, F, call, axis) >= 1, function, ": the padding of ", call.padding[i],
                  " along spatial axis ", axis, " leaves nothing of the result, for x ", x.sym_sizes(),
                  " and F ", F.sym_sizes());
    } else {
      TORCH_CHECK(pixels + 2 * call.padding[i] >= reach, function, ": the kernel reaches over ", reach,
                  " pixels along spatial axis ", axis, ", the padded image has ",
                  pixels + 2 * call.padding[i], "; take more padding, or a smaller kernel or dilation");
    }
  }
}

void check_convolution_bias(const Optional& bias, const at::Tensor& F, const ConvolutionCall& call) {
  if (!given(bias)) return;
  check_values("convolution", "bias", *bias);
  const c10::SymInt channels = F.sym_size(0) * call.units_out(F);
  TORCH_CHECK(bias->dim() == 1 && bias->sym_size(0) == channels,
              "convolution: bias must have out_channels = ", channels, " values, got ", bias->sym_sizes());
  TORCH_CHECK(bias->device() == F.device(), "convolution: bias is on ", bias->device(), ", F on ", F.device(),
              "; move one");
}

void check_convolution_grad(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                            const ConvolutionCall& call) {
  check_values("convolution_backward", "grad", grad);
  const std::vector<c10::SymInt> sizes = result_sizes(x, F, call);
  TORCH_CHECK(grad.sym_sizes() == c10::SymIntArrayRef(sizes),
              "convolution_backward: grad must have the shape of convolution's result ",
              c10::SymIntArrayRef(sizes), ", got ", grad.sym_sizes());
  TORCH_CHECK(grad.device() == x.device(), "convolution_backward: grad is on ", grad.device(), ", x on ",
              x.device(), "; move one");
  TORCH_CHECK(call.map.dtype || grad.scalar_type() == x.scalar_type(), "convolution_backward: grad is ",
              grad.scalar_type(), ", x ", x.scalar_type(), "; convert one, or give the dtype to compute in");
}

std::vector<c10::SymInt> result_sizes(const at::Tensor& x, const at::Tensor& F, const ConvolutionCall& call) {
  std::vector<c10::SymInt> sizes{x.sym_size(0), F.sym_size(0) * call.units_out(F)};
  for (int64_t axis = 0; axis < call.axes(); ++axis) sizes.push_back(result_size(x, F, call, axis));
  return sizes;
}

std::vector<int64_t> known_result_sizes(const at::Tensor& x, const at::Tensor& F,
                                        const ConvolutionCall& call) {
  std::vector<int64_t> sizes;
  for (const c10::SymInt& size : result_sizes(x, F, call)) sizes.push_back(size.expect_int());
  return sizes;
}

bool fits_winograd(const at::Tensor& F, const ConvolutionCall& call) {
  if (call.axes() < 2 || call.stride[0] != 1) return false;
  for (int64_t axis = call.axes() - 2; axis < call.axes(); ++axis) {
    const auto i = static_cast<size_t>(axis);
    if (F.size(3 + axis) != 3 || call.stride[i] != 1 || call.dilation[i] != 1 || call.padding[i] > 2)
      return false;
  }
  return true;
}

}  // namespace quatrain::ops
