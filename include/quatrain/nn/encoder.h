#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/pimpl.h>

#include <string>
#include <string_view>

#include "quatrain/nn/attention.h"
#include "quatrain/nn/feed_forward.h"
#include "quatrain/nn/norm.h"

namespace quatrain::nn {

/// Where an encoder layer normalises.
///   post   x = norm(x + F(x))
///   pre    x = x + F(norm(x)); the stack ends with a norm
///   phydi  x = x + alpha F(x): no norms, one learned alpha a layer, zero at the start (PHYDI (2), (5))
enum class NormStyle { post, pre, phydi };
QUATRAIN_API const char* name(NormStyle style);
QUATRAIN_API NormStyle parse_norm_style(std::string_view name);

/// Which linear maps of an encoder are in the algebra.
///   full     all
///   partial  only those of the attention; the feed-forward is real (QNLP)
enum class Scope { full, partial };
QUATRAIN_API const char* name(Scope scope);
QUATRAIN_API Scope parse_scope(std::string_view name);

/// Options of the layers of a Transformer.
struct QUATRAIN_API BlockSettings {
  int64_t width = 0;
  int64_t heads = 0;
  int64_t feed_forward = 2048;
  Scope scope = Scope::full;
  NormStyle norm = NormStyle::post;
  bool printed = false;
  bool norm_per_component = false;
};

template <class Self>
struct BlockOptions {
  /// Width of the model; n * heads must divide it (n and heads, where the split is `printed`).
  Self& width(int64_t value) {
    block_settings.width = value;
    return self();
  }
  int64_t width() const { return block_settings.width; }

  Self& heads(int64_t value) {
    block_settings.heads = value;
    return self();
  }
  int64_t heads() const { return block_settings.heads; }

  /// Hidden size of the feed-forward; n must divide it, where the scope is `full`.
  Self& feed_forward(int64_t value) {
    block_settings.feed_forward = value;
    return self();
  }
  int64_t feed_forward() const { return block_settings.feed_forward; }

  Self& scope(Scope value) {
    block_settings.scope = value;
    return self();
  }
  Scope scope() const { return block_settings.scope; }

  Self& norm(NormStyle value) {
    block_settings.norm = value;
    return self();
  }
  NormStyle norm() const { return block_settings.norm; }

  /// The sub-layers nested in one residual sum, as PHYDI prints them, instead of two sums one after the
  /// other: (4), norm2(x + ffn(norm1(x + att(x)))), with norm = post; (5), x + alpha ffn(x + alpha att(x)),
  /// with phydi.
  Self& printed(bool value) {
    block_settings.printed = value;
    return self();
  }
  bool printed() const { return block_settings.printed; }

  /// Each component is normalised separately.
  Self& norm_per_component(bool value) {
    block_settings.norm_per_component = value;
    return self();
  }
  bool norm_per_component() const { return block_settings.norm_per_component; }

  BlockSettings block_settings;

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

/// All options of a layer of a Transformer. dropout: of the attention weights, after the activation, and
/// before each residual sum (before alpha).
template <class Self>
struct TransformerOptions : MapOptions<Self>,
                            DropOptions<Self>,
                            HiddenOptions<Self>,
                            HeadOptions<Self>,
                            BlockOptions<Self> {
  TransformerOptions() { this->drop_settings.dropout = 0.1; }
};

struct QUATRAIN_API TransformerEncoderLayerOptions : TransformerOptions<TransformerEncoderLayerOptions> {
  TransformerEncoderLayerOptions(int64_t width, int64_t heads) { this->width(width).heads(heads); }
};

/// One layer of a Transformer encoder: self-attention and feed-forward with residuals. At n = 1, post-norm,
/// it computes what torch::nn::TransformerEncoderLayer does.
///
/// Children: `attention`, `feed_forward`, `norm1`, `norm2` (none with PHYDI, whose one parameter of its own
/// is `alpha`, a scalar). Shape: x (B, L, width), padding (B, L) bool or undefined -> (B, L, width).
class QUATRAIN_API TransformerEncoderLayerImpl : public torch::nn::Cloneable<TransformerEncoderLayerImpl> {
 public:
  TransformerEncoderLayerImpl(int64_t width, int64_t heads)
      : TransformerEncoderLayerImpl(TransformerEncoderLayerOptions(width, heads)) {}
  explicit TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  /// What stands at padding in the result is left open: what is computed of it, or zeros.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& padding = {}, bool causal = false);
  /// The same for the words of a padded batch as rows, (1, words, width) -> (1, words, width).
  at::Tensor forward_words(const at::Tensor& rows, const Words& words, bool causal = false);

  /// What a causal forward() makes of word `place` of each row, when the words before it went the same way: x
  /// (rows, width). `cache` takes the word's key and value, in slot i of row i. For inference.
  at::Tensor step(const at::Tensor& x, int64_t place, const AttentionCache& cache);

  TransformerEncoderLayerOptions options;
  MultiheadAttention attention{nullptr};
  FeedForward feed_forward{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr};
  at::Tensor alpha;

 private:
  at::Tensor drop(const at::Tensor& x) const;
  /// The two sub-layers with their norms and sums.
  template <class Self>
  at::Tensor sub_layers(const at::Tensor& x, const Self& self);

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(at::Tensor())}, {2, torch::nn::AnyValue(false)})
};
TORCH_MODULE(TransformerEncoderLayer);

struct QUATRAIN_API TransformerEncoderOptions {
  TransformerEncoderOptions(TransformerEncoderLayerOptions layer, int64_t layers)
      : layer_(layer), layers_(layers) {}
  TORCH_ARG(TransformerEncoderLayerOptions, layer);
  TORCH_ARG(int64_t, layers);
};

/// A stack of encoder layers, with a final norm where they are pre-norm. Children: `layers`, `norm`.
/// Shape: x (B, L, width), padding (B, L) bool or undefined -> (B, L, width). `causal`, and what stands at
/// padding, as in its layers.
class QUATRAIN_API TransformerEncoderImpl : public torch::nn::Cloneable<TransformerEncoderImpl> {
 public:
  explicit TransformerEncoderImpl(TransformerEncoderOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& padding = {}, bool causal = false);
  at::Tensor forward_words(const at::Tensor& rows, const Words& words, bool causal = false);

  TransformerEncoderOptions options;
  torch::nn::ModuleList layers{nullptr};
  LayerNorm norm{nullptr};

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(at::Tensor())}, {2, torch::nn::AnyValue(false)})
};
TORCH_MODULE(TransformerEncoder);

}  // namespace quatrain::nn
