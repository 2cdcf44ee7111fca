// The schemas of `convolution`, and the kernels that serve every device.

#include "ops/convolution/schema.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

namespace quatrain::ops {

namespace {

template <class Signature>
auto operator_of(const char* schema) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(schema, "").typed<Signature>();
}

}  // namespace

at::Tensor dispatch_convolution(const at::Tensor& x, const at::Tensor& F, const Optional& bias,
                                const ConvolutionCall& call) {
  static const auto op =
      operator_of<decltype(convolution_schema<&composed::convolution>)>("quatrain::convolution");
  const Call& map = call.map;
  return op.call(x, F, bias, map.algebra, map.A, map.factors, call.stride, call.padding, call.dilation,
                 call.transposed, call.output_padding, call.groups, name(map.way), name(call.winograd),
                 map.dtype, map.constant);
}

Gradients dispatch_convolution_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                                        const ConvolutionCall& call, Mask mask) {
  static const auto op = operator_of<decltype(convolution_backward_schema<&composed::convolution_backward>)>(
      "quatrain::convolution_backward");
  const Call& map = call.map;
  return op.call(grad, x, F, map.algebra, map.A, map.factors, call.stride, call.padding, call.dilation,
                 call.transposed, call.output_padding, call.groups, name(map.way), name(call.winograd),
                 map.dtype, mask);
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  m.def(
      "convolution(Tensor x, Tensor F, Tensor? bias, str algebra, Tensor? A, Tensor[]? factors, "
      "int[1] stride=1, int[1] padding=0, int[1] dilation=1, bool transposed=False, "
      "int[1] output_padding=0, int groups=1, str way=\"auto\", str winograd=\"auto\", "
      "ScalarType? dtype=None, bool constant=False) -> Tensor",
      tags);
  m.def(
      "convolution_backward(Tensor grad, Tensor x, Tensor F, str algebra, Tensor? A, Tensor[]? factors, "
      "int[1] stride=1, int[1] padding=0, int[1] dilation=1, bool transposed=False, "
      "int[1] output_padding=0, int groups=1, str way=\"auto\", str winograd=\"auto\", "
      "ScalarType? dtype=None, bool[3] output_mask=[True, True, True]) -> (Tensor, Tensor, Tensor)",
      tags);
}

TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("convolution", &convolution_schema<&composed::convolution>);
  m.impl("convolution_backward", &convolution_backward_schema<&composed::convolution_backward>);
}

TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatched, m) {
  m.impl("convolution", &convolution_schema<&traced::convolution>);
  m.impl("convolution_backward", &convolution_backward_schema<&traced::convolution_backward>);
}

// As of `linear`: for torch.autograd.grad(is_grads_batched=True).
TORCH_LIBRARY_IMPL(quatrain, Batched, m) {
  m.impl("convolution", &convolution_schema<&traced::convolution>);
  m.impl("convolution_backward", &convolution_backward_schema<&traced::convolution_backward>);
}

}  // namespace quatrain::ops
