#pragma once

#include <torch/arg.h>
#include <torch/nn/modules/container/any.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <string_view>
#include <vector>

#include "quatrain/nn/convolution.h"

namespace quatrain::models {

/// What a block makes of its input x and its branch F, which is convolutions with a ReLU between two.
///
///   plain  ReLU(s(x) + F(x)), with batch norms; the ResNet of He et al.
///   phydi  s(x) + alpha F(x), with batch norms; alpha is learned and 0 at the start, when each block is its
///          shortcut s (PHYDI (3))
///   code   s(x) + alpha ReLU(F(x)), as the paper's authors have it in their program
///   fixup  ReLU(s(x) + F(x)) without norms (Zhang et al. 2019): scalars around each convolution of a branch,
///          the last of which is zero at the start, the others scaled down with the depth; and a scalar
///          before the stem's ReLU and one before the head
enum class Residual { plain, phydi, code, fixup };

/// "plain", "phydi", "code", "fixup".
QUATRAIN_API const char* name(Residual residual);
/// The inverse; an unknown name is an error that lists the known ones.
QUATRAIN_API Residual parse_residual(std::string_view name);

/// What the network begins with: `small` a 3 x 3 convolution, for pictures of some 32 pixels a side; `large`,
/// for some 224, that of He et al.: a 7 x 7 convolution of stride 2, and behind its norm and ReLU the maximum
/// over 3 x 3 pixels in steps of 2. The blocks see a quarter of the rows and columns then.
enum class Stem { small, large };

/// "small", "large".
QUATRAIN_API const char* name(Stem stem);
/// The inverse; an unknown name is an error that lists the known ones.
QUATRAIN_API Stem parse_stem(std::string_view name);

/// What stands behind each convolution: torch's batch norm of each channel, or nn::WhiteningNorm of each
/// unit.
enum class ConvolutionNorm { batch, whitening };

/// "batch", "whitening".
QUATRAIN_API const char* name(ConvolutionNorm norm);
/// The inverse; an unknown name is an error that lists the known ones.
QUATRAIN_API ConvolutionNorm parse_convolution_norm(std::string_view name);

/// A PHResNet for images. `algebra`, `initialiser` (he) and `way` are those of all its convolutions,
/// which have no bias by default.
struct QUATRAIN_API ResNetOptions : nn::MapOptions<ResNetOptions> {
  /// Images of so many channels; n divides them, unless the first convolution is real.
  ResNetOptions(int64_t in_channels, int64_t classes) : in_channels_(in_channels), classes_(classes) {
    initialiser(nn::Initialiser::he).bias(false);
  }
  TORCH_ARG(int64_t, in_channels);
  TORCH_ARG(int64_t, classes);
  /// 18 and 34: blocks of two 3 x 3 convolutions; 50, 101, 152: of 1 x 1, 3 x 3 and 1 x 1, the last with four
  /// times the channels.
  TORCH_ARG(int64_t, depth) = 18;
  /// Channels of the four stages; n must divide them. PHYDI takes 60, 120, 240, 516 at n = 3.
  TORCH_ARG(std::vector<int64_t>, widths) = {64, 128, 256, 512};
  TORCH_ARG(Residual, residual) = Residual::plain;
  /// fixup has none, whatever stands here.
  TORCH_ARG(ConvolutionNorm, norm) = ConvolutionNorm::batch;
  TORCH_ARG(Stem, stem) = Stem::small;
  /// The first convolution is real.
  TORCH_ARG(bool, real_stem) = false;
  TORCH_ARG(ops::Winograd, winograd) = ops::Winograd::automatic;
};

/// A block of one branch: convolutions `conv1` ..., norms `norm1` ... but for fixup, and where the number of
/// channels or the size changes a 1 x 1 convolution `shortcut` with its `shortcut_norm`.
class QUATRAIN_API ResNetBlockImpl : public torch::nn::Cloneable<ResNetBlockImpl> {
 public:
  ResNetBlockImpl(const ResNetOptions& options, int64_t in_channels, int64_t width, int64_t stride);
  void reset() override;
  /// (B, in_channels, h, w) -> (B, out_channels(), h / stride, w / stride), rounded up.
  at::Tensor forward(const at::Tensor& x);
  int64_t out_channels() const { return out_; }

  ResNetOptions options;
  std::vector<nn::Conv2d> convolutions;
  std::vector<torch::nn::AnyModule> norms;
  nn::Conv2d shortcut{nullptr};
  torch::nn::AnyModule shortcut_norm;
  at::Tensor alpha;  ///< () of phydi and code
  /// fixup: what is added before and after each convolution, and what the branch is multiplied with, ().
  std::vector<at::Tensor> before, after;
  at::Tensor scale;

 private:
  at::Tensor branch(const at::Tensor& x);
  /// forward without gradients in eval mode: norms, the sum and activations ride on the convolutions.
  at::Tensor infer(const at::Tensor& x);

  int64_t in_, width_, stride_, out_;
};
TORCH_MODULE(ResNetBlock);

/// PHYDI's PHResNet: a stem, four stages of blocks, the mean over all pixels, a real linear layer. PHYDI's
/// own is that for CIFAR's images, with the small stem. At n = 1 it is the real ResNet.
///
/// Children: `stem`, `stem_norm`, `blocks`, `head`. Shape: (B, in_channels, h, w) -> (B, classes). Inside,
/// pixels lie with their channels together (channels last), whatever the input's memory is.
class QUATRAIN_API ResNetImpl : public torch::nn::Cloneable<ResNetImpl> {
 public:
  /// Throws std::invalid_argument where there is no such depth, where widths are not four or n does not
  /// divide one of them, where n does not divide in_channels unless the first convolution is real, and where
  /// classes are none.
  explicit ResNetImpl(ResNetOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  /// Throws c10::ValueError where x has another shape than (B, in_channels, h, w).
  at::Tensor forward(const at::Tensor& x);

  ResNetOptions options;
  nn::Conv2d stem{nullptr};
  torch::nn::AnyModule stem_norm;
  torch::nn::ModuleList blocks{nullptr};
  torch::nn::Linear head{nullptr};
  at::Tensor after_stem, before_head;  ///< () of fixup: added behind the stem, and before the head

 private:
  /// What the stem gives is taken to the blocks.
  at::Tensor pooled(const at::Tensor& y) const;
  /// Those of the first blocks that work on as many rows as pay, where the first one has so many pixels.
  size_t blocks_in_panels(int64_t pixels) const;
};
TORCH_MODULE(ResNet);

/// `widths`, each taken to the nearest multiple of n.
QUATRAIN_API std::vector<int64_t> divisible_widths(std::vector<int64_t> widths, int64_t n);

}  // namespace quatrain::models
