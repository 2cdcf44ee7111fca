// The C++ functions over the operator `convolution`.

#include "ops/convolution/schema.h"

namespace quatrain::ops {

namespace {

/// What is handed to the dispatcher: whoever unpacks it settles the way.
ConvolutionCall call_of(const at::Tensor& F, const Product& product, const ConvolutionOptions& options) {
  Call map;
  map.algebra = product.algebra;
  if (product.A.defined()) map.A = product.A;
  map.factors = product.factors;
  map.way = options.way, map.dtype = options.dtype, map.constant = options.constant;
  return make_convolution_call(F, std::move(map), options.stride, options.padding, options.dilation,
                               options.transposed, options.output_padding, options.groups, options.winograd);
}

}  // namespace

at::Tensor convolution(const at::Tensor& x, const at::Tensor& F, const at::Tensor& bias,
                       const Product& product, const ConvolutionOptions& options) {
  return dispatch_convolution(x, F, bias.defined() ? Optional(bias) : std::nullopt,
                              call_of(F, product, options));
}

Gradients convolution_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                               const Product& product, const ConvolutionOptions& options, Mask mask) {
  return dispatch_convolution_backward(grad, x, F, call_of(F, product, options), mask);
}

}  // namespace quatrain::ops
