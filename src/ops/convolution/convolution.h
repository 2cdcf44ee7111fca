#pragma once

#include <ATen/core/DimVector.h>
#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

#include <vector>

#include "ops/linear/linear.h"
#include "ops/order.h"
#include "quatrain/conv_ops.h"

/// The operator `convolution`. A call goes through these files, in this order:
///
///   schema.cpp         the registered schemas and the C++ functions; call.cpp reads and checks the arguments
///   autocast.cpp, meta.cpp
///   with_epilogue.cpp  `convolution_with_epilogue`, all of it but a CPU's part; epilogue.cpp has the pass
///                      over what the engine did not multiply
///   autograd.cpp       records it, by linear/derivatives.h; traced.cpp under function transforms
///   cpu.cpp            the engine for planes (plane.h): winograd.cpp and winograd_weights.cpp, or direct.cpp
///                      and direct_weights.cpp
///   composed.cpp       other devices and types; winograd_composed.cpp for float64
///
/// As `linear`, `convolution` and `convolution_backward` are the four partial derivatives of one form in
/// (grad, x, F, A), and so closed under differentiation.
namespace quatrain::ops {

/// What an operator is called with beside its tensors. Lists hold one value a spatial axis.
struct ConvolutionCall {
  Call map;
  std::vector<int64_t> stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
  Winograd winograd = Winograd::automatic;

  int64_t axes() const { return static_cast<int64_t>(stride.size()); }
  /// Units of a component of x and of y, from the sizes of F.
  c10::SymInt units_in(const at::Tensor& F) const {
    return transposed ? F.sym_size(1) : F.sym_size(2) * groups;
  }
  c10::SymInt units_out(const at::Tensor& F) const {
    return transposed ? F.sym_size(2) * groups : F.sym_size(1);
  }
};

/// Reads the arguments; F tells how many spatial axes there are. An error where F or a list does not fit.
ConvolutionCall make_convolution_call(const at::Tensor& F, Call map, at::IntArrayRef stride,
                                      at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed,
                                      at::IntArrayRef output_padding, int64_t groups, Winograd winograd);

/// Throws unless shapes, types and devices fit, and the result has a pixel or more. Works on symbolic sizes.
void check_convolution(const char* function, const at::Tensor& x, const at::Tensor& F,
                       const ConvolutionCall& call);
void check_convolution_bias(const Optional& bias, const at::Tensor& F, const ConvolutionCall& call);
void check_convolution_grad(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                            const ConvolutionCall& call);

/// What a kept form of F depends on beside the map.
at::DimVector geometry_of(const ConvolutionCall& call);

/// (B, k, spatial...).
std::vector<c10::SymInt> result_sizes(const at::Tensor& x, const at::Tensor& F, const ConvolutionCall& call);

/// H at each place of the kernel, as at::convolution wants it, with the n components side by side in each
/// group. Differentiable.
at::Tensor expanded_kernel(const at::Tensor& F, const ConvolutionCall& call);
/// The inverse order: from the gradient of that to one of (sum_i A_i (x) F_i), (n rows, n columns).
at::Tensor gradient_of_blocks(const at::Tensor& dH, const at::Tensor& F, const ConvolutionCall& call);
/// F as the S of a linear map of channels: (n, rows, columns and places of the kernel).
at::Tensor as_matrices(const at::Tensor& F);
/// Channels in the order of at::convolution's groups, and back.
at::Tensor by_group(const at::Tensor& x, int64_t n, int64_t groups);
at::Tensor by_component(const at::Tensor& y, int64_t n, int64_t groups);
/// The real convolution with such an H of n components, in H's type. Differentiable.
at::Tensor convolution_with(const at::Tensor& H, const at::Tensor& x, int64_t n, const Optional& bias,
                            const ConvolutionCall& call);

/// The gradients of x and of such an H of a real convolution with these groups; undefined where not wanted.
std::pair<at::Tensor, at::Tensor> gradients_with(const at::Tensor& H, const at::Tensor& grad,
                                                 const at::Tensor& x, int64_t groups, bool of_x, bool of_H,
                                                 const ConvolutionCall& call);

/// An epilogue's tensors, checked.
struct ConvolutionFinish {
  Optional scale, shift, residual;
  std::string activation;
};
void check_finish(const ConvolutionFinish& finish, const at::Tensor& x, const at::Tensor& F,
                  const ConvolutionCall& call);

/// The sizes of a result whose operands have known ones.
std::vector<int64_t> known_result_sizes(const at::Tensor& x, const at::Tensor& F,
                                        const ConvolutionCall& call);

/// True for a kernel of 3 x 3, or of planes of it, with stride 1: Winograd's transforms serve it.
bool fits_winograd(const at::Tensor& F, const ConvolutionCall& call);

/// Of ATen's calls, for every device and type. Not differentiable.
namespace composed {
at::Tensor convolution(const at::Tensor& x, const at::Tensor& F, const Optional& bias,
                       const ConvolutionCall& call);
Gradients convolution_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                               const ConvolutionCall& call, Mask mask);
/// m where the call asks for F(m x m, 3 x 3) and this form has it, else 0. Then one way, forward or to the
/// gradient of the input, whose result has the sizes `result`; and the gradient of F from images of a and of
/// b (plane.h). In the images' type.
int64_t winograd_tile(const at::Tensor& x, const at::Tensor& F, const ConvolutionCall& call);
at::Tensor run_winograd(const at::Tensor& input, const at::Tensor& F, at::IntArrayRef result, bool forward,
                        int64_t m, const ConvolutionCall& call);
at::Tensor winograd_weight_gradient(const at::Tensor& a, const at::Tensor& b, const at::Tensor& F, int64_t m,
                                    const ConvolutionCall& call);
/// Both through the dispatcher, differentiable. `finished` is what an epilogue makes of a result.
at::Tensor finished(at::Tensor y, const ConvolutionFinish& finish, at::MemoryFormat format);
at::Tensor convolution_with_epilogue(const at::Tensor& x, const at::Tensor& F,
                                     const ConvolutionFinish& finish, const ConvolutionCall& call);
}  // namespace composed

at::Tensor convolution_with_epilogue_cpu(const at::Tensor& x, const at::Tensor& F,
                                         const ConvolutionFinish& finish, const ConvolutionCall& call);

/// Through H, differentiable, without constant tensors, for function transforms.
namespace traced {
at::Tensor convolution(const at::Tensor& x, const at::Tensor& F, const Optional& bias,
                       const ConvolutionCall& call);
Gradients convolution_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                               const ConvolutionCall& call, Mask mask);
}  // namespace traced

/// The operators through torch's dispatcher.
at::Tensor dispatch_convolution(const at::Tensor& x, const at::Tensor& F, const Optional& bias,
                                const ConvolutionCall& call);
Gradients dispatch_convolution_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                                        const ConvolutionCall& call, Mask mask);

}  // namespace quatrain::ops
