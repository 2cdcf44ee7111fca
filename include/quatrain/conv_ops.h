#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/ops.h"

namespace quatrain::ops {

/// Winograd's transforms, which a 3 x 3 convolution of stride 1 without dilation, with a padding of at most
/// 2, may take on a CPU below the factors of its algebra: in float32, also in the planes of three axes; in
/// bfloat16 where the processor multiplies it in float32; in float64 with two axes and one group, but for a
/// pass that gives the gradient of a learned A:
///   automatic  F(2 x 2, 3 x 3) where it saves time; F(4 x 4, 3 x 3) where it saves more and PyTorch was told
///              that a CPU's convolutions may be less exact (torch.backends.mkldnn.conv.fp32_precision =
///              "tf32", "bf16")
///   none       never
///   f2         F(2 x 2, 3 x 3): 4/9 of the multiplications, errors as without
///   f4         F(4 x 4, 3 x 3) at the points 0, +-3/4, +-3/2: 1/4 of them; errors are some four times larger
/// f2 and f4 are taken wherever the way is `factored`, because it is asked for or because the planner takes
/// it. The planner takes it for real convolutions (n = 1) too, where f2 or f4 is asked for, but not for those
/// of few units (docs/engine.md lists how many; in float32 8 of a component in a group, and fewer). All
/// other convolutions go without, whatever is asked for, and so does a learned A that has no factors.
enum class Winograd { automatic, none, f2, f4 };

/// "auto", "none", "2x2", "4x4".
QUATRAIN_API const char* name(Winograd winograd);
/// The inverse; an unknown name is an error that lists the known ones.
QUATRAIN_API Winograd parse_winograd(std::string_view name);

/// Sets this in this thread for the lifetime of the guard. The environment variable QUATRAIN_WINOGRAD does so
/// for a whole process. An explicit argument takes precedence over both.
using WinogradGuard = Guard<Winograd>;

/// How a kernel moves over the image. Lists hold one value for each spatial axis, or one for all.
struct QUATRAIN_API ConvolutionOptions {
  std::vector<int64_t> stride{1};
  std::vector<int64_t> padding{0};  ///< zeros on both sides
  std::vector<int64_t> dilation{1};
  /// The transposed convolution: H maps each pixel of x to a kernel's size of pixels, which are added up.
  bool transposed = false;
  std::vector<int64_t> output_padding{
      0};  ///< transposed: rows that the result has more at the end of an axis
  /// Each component is split in so many parts, and group g holds the g-th part of every component. Output
  /// channels of a group depend on the input channels of that group alone.
  int64_t groups = 1;
  Way way = Way::automatic;  ///< `mixed` is for kernels of one pixel; elsewhere H serves in its place
  Winograd winograd = Winograd::automatic;
  std::optional<at::ScalarType> dtype = std::nullopt;  ///< to compute in (default: x's)
  bool constant = false;  ///< F will not change until it is trained again (as in linear)
};

/// y = H * x + bias: a convolution of 1 to 3 spatial axes whose map of channels is H = sum_i A_i (x) F_i at
/// each place of the kernel.
///
/// x: (B, d, spatial...), any strides, B = 0 included. F: (n, k/n, d/(n groups), kernel...); transposed:
/// (n, d/n, k/(n groups), kernel...), torch's order inside each F_i. H is sum_i A_i (x) F_i from input to
/// output channels in both, so the transposed convolution is not the other's adjoint, which would conjugate.
/// bias: (k) or undefined. Channels of x and y are n components side by side.
///
/// Returns (B, k, spatial...), in memory channels last where x's memory is (a signal's as that of a picture
/// of height 1), else contiguous. With n = 1 and A = 1 it is at::convolution. float64, float32, bfloat16,
/// half. Differentiable any number of times in x, F, A and bias. On a CPU the engine serves, in float32, and
/// in bfloat16 where float32 is as fast; elsewhere it is composed of ATen's calls. Errors: see ops.h.
QUATRAIN_API at::Tensor convolution(const at::Tensor& x, const at::Tensor& F, const at::Tensor& bias,
                                    const Product& product, const ConvolutionOptions& options = {});

/// What becomes of a convolution's values: activation(scale y + shift + residual), value by value. Tensors
/// that are undefined are left out.
struct QUATRAIN_API ConvolutionEpilogue {
  at::Tensor scale;                          ///< (k), as of a batch norm in eval mode
  at::Tensor shift;                          ///< (k)
  at::Tensor residual;                       ///< of the result's shape
  std::string_view activation = "identity";  ///< a name that `activation` knows (layer_ops.h)
};

/// `convolution` with an epilogue in place of its bias. On a CPU in float32, where nothing needs a gradient,
/// values are finished while they are in the cache (identity, relu, tanh and sigmoid; others after it).
/// Elsewhere it is the convolution and ATen's calls, and differentiable.
QUATRAIN_API at::Tensor convolution_with_epilogue(const at::Tensor& x, const at::Tensor& F,
                                                  const Product& product, const ConvolutionEpilogue& epilogue,
                                                  const ConvolutionOptions& options = {});

/// Gradients of `convolution` for (x, F, A), each of its argument's sizes and only where the mask asks, else
/// undefined. grad: (B, k, spatial...), of the result's sizes. Throws c10::Error where sizes, types or
/// devices do not fit. Differentiable any number of times.
QUATRAIN_API std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F, const Product& product,
    const ConvolutionOptions& options, std::array<bool, 3> mask);

}  // namespace quatrain::ops
