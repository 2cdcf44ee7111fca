#pragma once

#include <torch/arg.h>
#include <torch/expanding_array.h>
#include <torch/nn/options/conv.h>
#include <torch/nn/pimpl.h>

#include <optional>
#include <vector>

#include "quatrain/conv_ops.h"
#include "quatrain/nn/layer.h"
#include "quatrain/nn/options.h"

namespace quatrain::nn {

/// Options of a convolution of D spatial axes, plain or transposed; those of torch::nn's of the same names
/// mean the same.
template <size_t D, bool transposed>
struct QUATRAIN_API ConvNdOptions : MapOptions<ConvNdOptions<D, transposed>> {
  using Sizes = torch::ExpandingArray<D>;
  using Padding = typename torch::nn::ConvOptions<D>::padding_t;
  using PaddingMode = typename torch::nn::ConvOptions<D>::padding_mode_t;

  ConvNdOptions(int64_t in_channels, int64_t out_channels, Sizes kernel_size)
      : in_channels_(in_channels), out_channels_(out_channels), kernel_size_(std::move(kernel_size)) {}
  /// d; n * groups must divide it.
  TORCH_ARG(int64_t, in_channels);
  /// k; n * groups must divide it.
  TORCH_ARG(int64_t, out_channels);
  TORCH_ARG(Sizes, kernel_size);
  TORCH_ARG(Sizes, stride) = 1;
  /// Pixels on both sides of an axis; or torch::kSame (as large as x, where the stride is 1) or
  /// torch::kValid (none), which a transposed convolution does not take.
  TORCH_ARG(Padding, padding) = 0;

 public:
  ConvNdOptions& padding(std::initializer_list<int64_t> pixels) { return padding(Sizes(pixels)); }
  TORCH_ARG(Sizes, dilation) = 1;
  /// Each component is split in so many parts, and group g holds the g-th part of every component.
  TORCH_ARG(int64_t, groups) = 1;
  /// What padding holds: torch::kZeros, kReflect, kReplicate or kCircular; a transposed convolution has
  /// zeros.
  TORCH_ARG(PaddingMode, padding_mode) = torch::kZeros;
  /// Of a transposed convolution: pixels that the result has more at the end of an axis.
  TORCH_ARG(Sizes, output_padding) = 0;
  /// Which of Winograd's transforms a 3 x 3 convolution takes; `f4` is faster and less exact (ops::Winograd).
  TORCH_ARG(ops::Winograd, winograd) = ops::Winograd::automatic;
};

/// A convolution whose map of channels is H = sum_i A_i (x) F_i at each place of the kernel (PHC, PHYDI (2)):
/// 1/n of the weights of torch's, which it is at n = 1.
///
/// A weight and a bias: its parameters are those of HypercomplexWeight with F in the place of S, `A` or
/// `factors` and `w` where they are learned, and `F` (n, k/n, d/(n groups), kernel...), of a transposed
/// convolution (n, d/n, k/(n groups), kernel...); and `bias` (k), zero at start.
///
/// Shape: (B, d, spatial...) or (d, spatial...) -> the same with k channels, n components side by side on the
/// axis of channels.
template <size_t D, bool transposed>
class QUATRAIN_API ConvNdImpl : public HypercomplexModule<ConvNdImpl<D, transposed>>,
                                public HypercomplexWeight {
 public:
  using Options = ConvNdOptions<D, transposed>;

  ConvNdImpl(int64_t in_channels, int64_t out_channels, torch::ExpandingArray<D> kernel_size)
      : ConvNdImpl(Options(in_channels, out_channels, std::move(kernel_size))) {}
  /// Throws std::invalid_argument where n * groups does not divide a number of channels, or options
  /// contradict each other.
  explicit ConvNdImpl(Options options);

  void reset() override;
  /// Draws F and A anew by the options' initialiser; bias zero, w one.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  std::vector<HypercomplexWeight*> weights() override { return {this}; }
  std::string bound_to_algebra() const override;

  at::Tensor forward(const at::Tensor& x);
  /// activation(scale (H x + bias) + shift + residual), value by value; what is undefined is left out. scale
  /// and shift have k values, the residual has the shape of the result. So a batch norm in eval mode, a
  /// residual sum and an activation cost nothing of their own, where no gradient is asked for
  /// (ops::ConvolutionEpilogue).
  at::Tensor forward_with_epilogue(const at::Tensor& x, const ops::ConvolutionEpilogue& epilogue);
  /// The transposed convolution with the output padding that makes the result's spatial axes so large (D
  /// numbers, or the result's whole shape); an error where none does.
  at::Tensor forward_to_size(const at::Tensor& x, at::IntArrayRef output_size) requires transposed;

  Options options;
  at::Tensor bias;

 private:
  at::Tensor run(const at::Tensor& x, std::optional<at::IntArrayRef> output_size,
                 const ops::ConvolutionEpilogue* epilogue);
};

using Conv1dOptions = ConvNdOptions<1, false>;
using Conv2dOptions = ConvNdOptions<2, false>;
using Conv3dOptions = ConvNdOptions<3, false>;
using ConvTranspose1dOptions = ConvNdOptions<1, true>;
using ConvTranspose2dOptions = ConvNdOptions<2, true>;
using ConvTranspose3dOptions = ConvNdOptions<3, true>;
using Conv1dImpl = ConvNdImpl<1, false>;
using Conv2dImpl = ConvNdImpl<2, false>;
using Conv3dImpl = ConvNdImpl<3, false>;
using ConvTranspose1dImpl = ConvNdImpl<1, true>;
using ConvTranspose2dImpl = ConvNdImpl<2, true>;
using ConvTranspose3dImpl = ConvNdImpl<3, true>;
TORCH_MODULE(Conv1d);
TORCH_MODULE(Conv2d);
TORCH_MODULE(Conv3d);
TORCH_MODULE(ConvTranspose1d);
TORCH_MODULE(ConvTranspose2d);
TORCH_MODULE(ConvTranspose3d);

}  // namespace quatrain::nn
