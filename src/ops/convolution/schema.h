#pragma once

#include "ops/convolution/convolution.h"
#include "ops/engine/options.h"
#include "ops/linear/schema.h"

/// The arguments of the registered operators, spelled once: a kernel takes a ConvolutionCall, and is
/// registered as `&convolution_schema<&kernel>`.
namespace quatrain::ops {

using ConvolutionKernel = at::Tensor (*)(const at::Tensor& x, const at::Tensor& F, const Optional& bias,
                                         const ConvolutionCall& call);
using EpilogueKernel = at::Tensor (*)(const at::Tensor& x, const at::Tensor& F,
                                      const ConvolutionFinish& finish, const ConvolutionCall& call);
using ConvolutionBackwardKernel = Gradients (*)(const at::Tensor& grad, const at::Tensor& x,
                                                const at::Tensor& F, const ConvolutionCall& call, Mask mask);

/// What is handed to the dispatcher: whoever unpacks it settles the way.
ConvolutionCall convolution_call_of(const at::Tensor& F, const Product& product,
                                    const ConvolutionOptions& options);

template <ConvolutionKernel kernel>
at::Tensor convolution_schema(const at::Tensor& x, const at::Tensor& F, const Optional& bias,
                              std::string_view algebra, const Optional& A, const SomeTensors& factors,
                              at::IntArrayRef stride, at::IntArrayRef padding, at::IntArrayRef dilation,
                              bool transposed, at::IntArrayRef output_padding, int64_t groups,
                              std::string_view way, std::string_view winograd, Dtype dtype, bool constant) {
  return kernel(x, F, bias,
                make_convolution_call(F, make_call(algebra, A, listed(factors), way, dtype, constant), stride,
                                      padding, dilation, transposed, output_padding, groups,
                                      requested_winograd(parse_winograd(winograd))));
}

template <ConvolutionBackwardKernel kernel>
Gradients convolution_backward_schema(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                                      std::string_view algebra, const Optional& A, const SomeTensors& factors,
                                      at::IntArrayRef stride, at::IntArrayRef padding,
                                      at::IntArrayRef dilation, bool transposed,
                                      at::IntArrayRef output_padding, int64_t groups, std::string_view way,
                                      std::string_view winograd, Dtype dtype, Mask output_mask) {
  return kernel(
      grad, x, F,
      make_convolution_call(F, make_call(algebra, A, listed(factors), way, dtype), stride, padding, dilation,
                            transposed, output_padding, groups, requested_winograd(parse_winograd(winograd))),
      output_mask);
}

}  // namespace quatrain::ops
