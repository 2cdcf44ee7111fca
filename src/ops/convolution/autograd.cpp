// What autograd records of `convolution` and `convolution_backward`.

#include <ATen/ops/sum.h>
#include <torch/library.h>

#include "ops/convolution/schema.h"
#include "ops/linear/derivatives.h"

namespace quatrain::ops {

// What profiles name; their functions are in this file alone.
namespace autograd {

struct ConvolutionForm {
  using Call = ConvolutionCall;
  static ops::Call& map(Call& call) { return call.map; }
  static const ops::Call& map(const Call& call) { return call.map; }

  static at::Tensor apply(const at::Tensor& x, const at::Tensor& F, const Optional& bias, const Call& call) {
    return dispatch_convolution(x, F, bias, call);
  }
  static std::tuple<at::Tensor, at::Tensor> apply_and_keep(const at::Tensor& x, const at::Tensor& F,
                                                           const Optional& bias, const Call& call) {
    return {dispatch_convolution(x, F, bias, call), at::Tensor()};
  }
  static Gradients apply_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                                  const Call& call, Mask mask, const Optional& /*kept*/) {
    return dispatch_convolution_backward(grad, x, F, call, mask);
  }
  static at::Tensor traced(const at::Tensor& x, const at::Tensor& F, const Optional& bias, const Call& call) {
    return traced::convolution(x, F, bias, call);
  }
  static Gradients traced_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                                   const Call& call, Mask mask) {
    return traced::convolution_backward(grad, x, F, call, mask);
  }
  static at::Tensor bias_gradient(const at::Tensor& grad, const at::Tensor& bias) {
    std::vector<int64_t> axes{0};
    for (int64_t axis = 2; axis < grad.dim(); ++axis) axes.push_back(axis);
    return grad.sum(axes, false, bias.scalar_type());
  }
  static Way direction(Way /*way*/) { return Way::materialised; }

  template <class Data>
  static void save(Data& data, const Call& call) {
    data["winograd"] = static_cast<int64_t>(call.winograd);
    data["stride"] = call.stride, data["padding"] = call.padding, data["dilation"] = call.dilation;
    data["output_padding"] = call.output_padding;
    data["transposed"] = call.transposed, data["groups"] = call.groups;
  }
  template <class Data>
  static void restore(Data& data, Call& call) {
    const auto list = [&](const char* name) { return data[name].toIntVector(); };
    call.winograd = static_cast<Winograd>(data["winograd"].toInt());
    call.stride = list("stride"), call.padding = list("padding"), call.dilation = list("dilation");
    call.output_padding = list("output_padding");
    call.transposed = data["transposed"].toBool(), call.groups = data["groups"].toInt();
  }
};

struct Convolution : derivatives::Forward<Convolution, ConvolutionForm> {};
struct ConvolutionBackward : derivatives::Backward<ConvolutionBackward, ConvolutionForm> {};

}  // namespace autograd

namespace {

Gradients record_convolution_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                                      const ConvolutionCall& call, Mask mask) {
  return derivatives::record_backward<autograd::ConvolutionBackward>(grad, x, F, call, mask, std::nullopt);
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, Autograd, m) {
  m.impl("convolution", &convolution_schema<&derivatives::record<autograd::Convolution>>);
  m.impl("convolution_backward", &convolution_backward_schema<&record_convolution_backward>);
}

}  // namespace quatrain::ops
