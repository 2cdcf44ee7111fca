// The shapes of `convolution` and `convolution_backward`, without values.

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "ops/convolution/schema.h"

namespace quatrain::ops {

namespace {

at::Tensor convolution_meta(const at::Tensor& x, const at::Tensor& F, const Optional& bias,
                            const ConvolutionCall& call) {
  check_convolution("convolution", x, F, call);
  check_convolution_bias(bias, F, call);
  return empty_in_order(result_sizes(x, F, call), x.options().dtype(call.map.compute_dtype(x)), format_of(x));
}

Gradients convolution_backward_meta(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                                    const ConvolutionCall& call, Mask mask) {
  check_convolution("convolution_backward", x, F, call);
  check_convolution_grad(grad, x, F, call);
  const auto like = [](const at::Tensor& t, bool wanted) {
    return wanted ? at::empty_symint(t.sym_sizes(), t.options()) : at::Tensor();
  };
  return {mask[0] ? empty_in_order(x.sym_sizes(), x.options(), format_of(x)) : at::Tensor(), like(F, mask[1]),
          call.map.learned() ? like(*call.map.A, mask[2]) : at::Tensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, Meta, m) {
  m.impl("convolution", &convolution_schema<&convolution_meta>);
  m.impl("convolution_backward", &convolution_backward_schema<&convolution_backward_meta>);
}

}  // namespace quatrain::ops
