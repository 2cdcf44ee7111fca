#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/pimpl.h>

#include "quatrain/nn/encoder.h"

namespace quatrain::nn {

/// packed: of the self-attention; the other's queries and keys come from two places.
struct QUATRAIN_API TransformerDecoderLayerOptions : TransformerOptions<TransformerDecoderLayerOptions> {
  TransformerDecoderLayerOptions(int64_t width, int64_t heads) { this->width(width).heads(heads); }
};

/// One layer of a Transformer decoder: causal self-attention, attention to an encoder's output (`memory`) and
/// feed-forward, each with a residual. At n = 1, post-norm, it computes what
/// torch::nn::TransformerDecoderLayer does with a causal mask.
///
/// Children: `attention`, `cross_attention`, `feed_forward`, `norm1`, `norm2`, `norm3` (none with PHYDI,
/// whose one parameter of its own is `alpha`, a scalar). Shape: x (B, L, width), memory (B, S, width),
/// padding (B, L) and memory_padding (B, S) bool or undefined -> (B, L, width).
class QUATRAIN_API TransformerDecoderLayerImpl : public torch::nn::Cloneable<TransformerDecoderLayerImpl> {
 public:
  TransformerDecoderLayerImpl(int64_t width, int64_t heads)
      : TransformerDecoderLayerImpl(TransformerDecoderLayerOptions(width, heads)) {}
  explicit TransformerDecoderLayerImpl(TransformerDecoderLayerOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& memory, const at::Tensor& padding = {},
                     const at::Tensor& memory_padding = {});

  /// The same with the weights of the attention to the memory, (B, heads, maps, L, S): see
  /// MultiheadAttention::forward.
  std::tuple<at::Tensor, at::Tensor> forward_with_weights(const at::Tensor& x, const at::Tensor& memory,
                                                          const at::Tensor& padding = {},
                                                          const at::Tensor& memory_padding = {});

  /// What forward() makes of word `place` of each row, when the words before it went the same way: x (rows,
  /// width). `self` takes the word's key and value, in slot i of row i; `cross` holds those of the memory.
  /// For inference.
  at::Tensor step(const at::Tensor& x, int64_t place, const AttentionCache& self,
                  const AttentionCache& cross);

  TransformerDecoderLayerOptions options;
  MultiheadAttention attention{nullptr}, cross_attention{nullptr};
  FeedForward feed_forward{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr}, norm3{nullptr};
  at::Tensor alpha;

 private:
  at::Tensor drop(const at::Tensor& x) const;
  /// The three sub-layers with their norms and sums.
  template <class Self, class Cross>
  at::Tensor sub_layers(const at::Tensor& x, const Self& self, const Cross& cross);

 protected:
  FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(at::Tensor())}, {3, torch::nn::AnyValue(at::Tensor())})
};
TORCH_MODULE(TransformerDecoderLayer);

struct QUATRAIN_API TransformerDecoderOptions {
  TransformerDecoderOptions(TransformerDecoderLayerOptions layer, int64_t layers)
      : layer_(layer), layers_(layers) {}
  TORCH_ARG(TransformerDecoderLayerOptions, layer);
  TORCH_ARG(int64_t, layers);
};

/// A stack of decoder layers, with a final norm where they are pre-norm. Children: `layers`, `norm`. Shapes
/// as in its layers.
class QUATRAIN_API TransformerDecoderImpl : public torch::nn::Cloneable<TransformerDecoderImpl> {
 public:
  explicit TransformerDecoderImpl(TransformerDecoderOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& memory, const at::Tensor& padding = {},
                     const at::Tensor& memory_padding = {});

  TransformerDecoderOptions options;
  torch::nn::ModuleList layers{nullptr};
  LayerNorm norm{nullptr};

 protected:
  FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(at::Tensor())}, {3, torch::nn::AnyValue(at::Tensor())})
};
TORCH_MODULE(TransformerDecoder);

}  // namespace quatrain::nn
