#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
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

struct QUATRAIN_API TransformerEncoderLayerOptions {
  TransformerEncoderLayerOptions(int64_t width, int64_t heads) : width_(width), heads_(heads) {}
  TORCH_ARG(int64_t, width);
  TORCH_ARG(int64_t, heads);
  TORCH_ARG(int64_t, feed_forward) = 2048;
  TORCH_ARG(AlgebraSpec, algebra);
  TORCH_ARG(Scope, scope) = Scope::full;
  TORCH_ARG(NormStyle, norm) = NormStyle::post;
  /// PHYDI (5) as printed, x + alpha ffn(x + alpha att(x)), instead of two residuals one after the other.
  TORCH_ARG(bool, printed) = false;
  TORCH_ARG(bool, norm_per_component) = false;
  TORCH_ARG(AttentionKind, attention) = AttentionKind::automatic;
  TORCH_ARG(bool, packed) = false;
  TORCH_ARG(HeadSplit, split) = HeadSplit::inside;
  TORCH_ARG(std::string, activation) = "relu";
  /// Dropout of the attention weights, after the activation, and before each residual sum (before alpha).
  TORCH_ARG(double, dropout) = 0.1;
  /// Drops whole hypercomplex units of the activations instead of single elements.
  TORCH_ARG(bool, dropout_per_unit) = false;
  TORCH_ARG(bool, bias) = true;
  TORCH_ARG(Initialiser, initialiser) = Initialiser::glorot;
  TORCH_ARG(ops::Way, way) = ops::Way::automatic;
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
  at::Tensor forward(const at::Tensor& x, const at::Tensor& padding = {});

  TransformerEncoderLayerOptions options;
  MultiheadAttention attention{nullptr};
  FeedForward feed_forward{nullptr};
  LayerNorm norm1{nullptr}, norm2{nullptr};
  at::Tensor alpha;

 private:
  at::Tensor drop(const at::Tensor& x) const;
};
TORCH_MODULE(TransformerEncoderLayer);

struct QUATRAIN_API TransformerEncoderOptions {
  TransformerEncoderOptions(TransformerEncoderLayerOptions layer, int64_t layers)
      : layer_(layer), layers_(layers) {}
  TORCH_ARG(TransformerEncoderLayerOptions, layer);
  TORCH_ARG(int64_t, layers);
};

/// A stack of encoder layers, with a final norm where they are pre-norm. Children: `layers`, `norm`.
/// Shape: x (B, L, width), padding (B, L) bool or undefined -> (B, L, width).
class QUATRAIN_API TransformerEncoderImpl : public torch::nn::Cloneable<TransformerEncoderImpl> {
 public:
  explicit TransformerEncoderImpl(TransformerEncoderOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  at::Tensor forward(const at::Tensor& x, const at::Tensor& padding = {});

  TransformerEncoderOptions options;
  torch::nn::ModuleList layers{nullptr};
  LayerNorm norm{nullptr};
};
TORCH_MODULE(TransformerEncoder);

}  // namespace quatrain::nn
