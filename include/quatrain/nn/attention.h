#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include <string_view>
#include <tuple>

#include "quatrain/nn/linear.h"

namespace quatrain::nn {

/// What the softmax of attention sees.
///   componentwise  n score maps, the components of Q * K^T; each weights its own component of V (QNLP (4))
///   real           one score map, Q K^T over the whole head (PHM 4.2)
///   automatic      componentwise for a fixed algebra, real for a learned one: as the papers' models do
enum class AttentionKind { automatic, componentwise, real };
QUATRAIN_API const char* name(AttentionKind kind);
QUATRAIN_API AttentionKind parse_attention_kind(std::string_view name);

/// How heads and packed projections are cut.
///   inside   inside every component, so that each head holds whole hypercomplex numbers
///   printed  a plain split of the last axis, as PHM prints it
enum class HeadSplit { inside, printed };
QUATRAIN_API const char* name(HeadSplit split);
QUATRAIN_API HeadSplit parse_head_split(std::string_view name);

/// What layers with attention heads are told.
struct QUATRAIN_API HeadSettings {
  AttentionKind attention = AttentionKind::automatic;
  bool packed = false;
  HeadSplit split = HeadSplit::inside;
};

template <class Self>
struct HeadOptions {
  Self& attention(AttentionKind value) {
    head_settings.attention = value;
    return static_cast<Self&>(*this);
  }
  AttentionKind attention() const { return head_settings.attention; }

  /// One layer width -> 3 width for Q, K and V (self-attention only), instead of three.
  Self& packed(bool value) {
    head_settings.packed = value;
    return static_cast<Self&>(*this);
  }
  bool packed() const { return head_settings.packed; }

  Self& split(HeadSplit value) {
    head_settings.split = value;
    return static_cast<Self&>(*this);
  }
  HeadSplit split() const { return head_settings.split; }

  HeadSettings head_settings;
};

/// dropout: of the attention weights.
struct QUATRAIN_API MultiheadAttentionOptions : MapOptions<MultiheadAttentionOptions>,
                                                DropOptions<MultiheadAttentionOptions>,
                                                HeadOptions<MultiheadAttentionOptions> {
  MultiheadAttentionOptions(int64_t width, int64_t heads) : width_(width), heads_(heads) {}
  TORCH_ARG(int64_t, width);
  /// n * heads must divide the width (heads, where the split is `printed`).
  TORCH_ARG(int64_t, heads);
};

/// Multi-head attention over any algebra.
///
/// Component-wise, the score of component c is sum_{i,j} A[i, c, j] Q_i K_j^T / sqrt(d_h): the Hamilton
/// product Q * K^T, K not conjugated, d_h = width/heads the full real width of a head. A learned algebra has
/// no table that Q, K and V share: it takes real attention. Children: `query`, `key`, `value` or `packed`,
/// and `output`, all Linear.
class QUATRAIN_API MultiheadAttentionImpl : public torch::nn::Cloneable<MultiheadAttentionImpl> {
 public:
  MultiheadAttentionImpl(int64_t width, int64_t heads)
      : MultiheadAttentionImpl(MultiheadAttentionOptions(width, heads)) {}
  explicit MultiheadAttentionImpl(MultiheadAttentionOptions options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// query (B, L, width), key and value (B, S, width), padding (B, S) bool, true where a key is padding, or
  /// undefined. One mask serves all score maps; a query whose keys are all padding gets zeros before the
  /// output projection. Returns the output (B, L, width) and, where `need_weights`, the attention weights (B,
  /// heads, maps, L, S) with maps = n (component-wise) or 1; else undefined. The weights are those before
  /// dropout.
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& query, const at::Tensor& key,
                                             const at::Tensor& value, const at::Tensor& padding = {},
                                             bool need_weights = false);
  /// Self-attention: x (B, L, width) -> (B, L, width).
  at::Tensor self_attention(const at::Tensor& x, const at::Tensor& padding = {});

  /// componentwise or real: what `automatic` came to.
  AttentionKind kind() const { return kind_; }

  MultiheadAttentionOptions options;
  Linear query{nullptr}, key{nullptr}, value{nullptr};
  Linear packed{nullptr};
  Linear output{nullptr};

 private:
  AttentionKind kind_;
};
TORCH_MODULE(MultiheadAttention);

}  // namespace quatrain::nn
