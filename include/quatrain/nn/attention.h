#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "quatrain/layer_ops.h"
#include "quatrain/nn/linear.h"
#include "quatrain/nn/words.h"

namespace quatrain::nn {

/// Which scores the softmax of attention is computed from.
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

/// Why an algebra has no such attention: Q and K share a table of component-wise scores, and its heads hold
/// whole numbers. Empty where it has; with one component both kinds are the same. `table`: what stands before
/// an option's name.
QUATRAIN_API std::string attention_problem(AttentionKind asked, const AlgebraSpec& algebra,
                                           HeadSplit split = HeadSplit::inside, const char* table = "");
/// What is computed, componentwise or real, of what was asked for and has no problem.
QUATRAIN_API AttentionKind attention_kind(AttentionKind asked, const AlgebraSpec& algebra,
                                          HeadSplit split = HeadSplit::inside);

/// Options of layers with attention heads.
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

/// The memory of a layer that sees its words one after the other, as ops::cached_attention reads it: keys and
/// values (slots, capacity, n, heads, m), and which of them each row sees, table (rows, length) and lengths
/// (rows), int32.
struct QUATRAIN_API AttentionCache {
  at::Tensor keys, values, table, lengths;
};

/// dropout: of the attention weights.
struct QUATRAIN_API MultiheadAttentionOptions : MapOptions<MultiheadAttentionOptions>,
                                                DropOptions<MultiheadAttentionOptions>,
                                                HeadOptions<MultiheadAttentionOptions> {
  MultiheadAttentionOptions(int64_t width, int64_t heads) : width_(width), heads_(heads) {}
  TORCH_ARG(int64_t, width);
  /// n * heads must divide the width (n and heads, where the split is `printed`).
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

  /// query (B, L, width), key and value (B, S, width), padding (B, S) bool, true where a key is padding, mask
  /// as ops::AttentionOptions has it, true or finite where a query sees a key; either may be undefined.
  /// `causal`: query l sees the keys 0 .. l. One mask serves all score maps; a query that sees no key gets
  /// zeros before the output projection. Returns the output (B, L, width) and, where `need_weights`, the
  /// attention weights (B, heads, maps, L, S) with maps = n (component-wise) or 1; else undefined. The
  /// weights are those before dropout. Without a batch: (L, width), (S, width), padding (S). In Python
  /// padding may also be floating, which is added to the scores.
  ///
  /// The first six arguments stand in the order of torch::nn::MultiheadAttention, whose key_padding_mask is
  /// `padding` and whose attn_mask is `mask`; the seventh does not. These differ from it: the batch comes
  /// first; weights are returned where they are asked for, of each head; a bool mask of Python's torch.nn is
  /// true where a query does NOT see a key, and torch's C++ module adds it to the scores as ones.
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& query, const at::Tensor& key,
                                             const at::Tensor& value, const at::Tensor& padding = {},
                                             bool need_weights = false, const at::Tensor& mask = {},
                                             bool causal = false);
  /// Self-attention: x (B, L, width) -> (B, L, width).
  at::Tensor self_attention(const at::Tensor& x, const at::Tensor& padding = {}, const at::Tensor& mask = {},
                            bool causal = false);

  /// The same for the words of a padded batch as rows, (1, words, width) -> (1, words, width): the maps see
  /// no padding, and each text attends to its own words.
  at::Tensor self_attention_of_words(const at::Tensor& rows, const Words& words, bool causal = false);

  /// The parts of forward(), for what keeps keys and values. Heads are (B, length, n, heads, m), n the
  /// components that heads are cut inside: 1 where the split is `printed`.
  ///
  /// Query, key and value of one x (B, L, width); for a packed projection too.
  std::tuple<at::Tensor, at::Tensor, at::Tensor> project(const at::Tensor& x);
  /// An error where the projection is packed, because it has no separate layers.
  at::Tensor project_query(const at::Tensor& x);
  std::tuple<at::Tensor, at::Tensor> project_key_value(const at::Tensor& key, const at::Tensor& value);
  /// forward() of projected heads. `how` says what is seen, the scale and the order; its algebra and dropout
  /// are ignored: the layer's own are used.
  std::tuple<at::Tensor, at::Tensor> attend(const at::Tensor& query, const at::Tensor& key,
                                            const at::Tensor& value, ops::AttentionOptions how = {},
                                            bool need_weights = false);

  /// One word of each row, x (rows, width) -> the same. For inference.
  ///
  /// Self-attention of word `place` over the words before it and itself. Its key and value are put into slot
  /// i of row i of the cache.
  at::Tensor step(const at::Tensor& x, int64_t place, const AttentionCache& cache);
  /// Attention to what a cache holds of something else.
  at::Tensor cross_step(const at::Tensor& x, const AttentionCache& cache);
  /// An empty cache for so many rows and words; its table and lengths are left to its owner.
  AttentionCache make_cache(int64_t slots, int64_t capacity) const;

  /// componentwise or real, also where the option is `automatic`.
  AttentionKind kind() const { return kind_; }
  /// Components that heads are cut inside.
  int64_t components() const;
  /// What the scores are made with.
  std::string score_algebra() const;

  MultiheadAttentionOptions options;
  Linear query{nullptr}, key{nullptr}, value{nullptr};
  Linear packed{nullptr};
  Linear output{nullptr};

 private:
  /// Heads of a projection of x, cut into parts.
  std::vector<at::Tensor> heads_of(Linear& layer, const at::Tensor& x, int64_t parts) const;
  /// The same of one word of each row, x (rows, width): (rows, n, heads, m).
  at::Tensor word_heads_of(Linear& layer, const at::Tensor& x) const;
  at::Tensor attend_word(const at::Tensor& query, const AttentionCache& cache);
  /// The layer's own algebra and dropout put into what is seen.
  ops::AttentionOptions with_own(ops::AttentionOptions how) const;

  AttentionKind kind_;

 protected:
  FORWARD_HAS_DEFAULT_ARGS({3, torch::nn::AnyValue(at::Tensor())}, {4, torch::nn::AnyValue(false)},
                           {5, torch::nn::AnyValue(at::Tensor())}, {6, torch::nn::AnyValue(false)})
};
TORCH_MODULE(MultiheadAttention);

}  // namespace quatrain::nn
