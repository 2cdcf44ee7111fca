#include "quatrain/nn/attention.h"

#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "nn/enum_names.h"
#include "quatrain/nn/dropout.h"

// Shapes: B texts, L queries, S keys, h heads, n components, m values of a component in a head. A head holds
// n m = d_h real values. A `printed` split is the same with one component of all the width.

namespace quatrain::nn {

namespace {

constexpr EnumNames<AttentionKind, 3> kKinds{{{AttentionKind::automatic, "automatic"},
                                              {AttentionKind::componentwise, "componentwise"},
                                              {AttentionKind::real, "real"}}};
constexpr EnumNames<HeadSplit, 2> kSplits{{{HeadSplit::inside, "inside"}, {HeadSplit::printed, "printed"}}};

AttentionKind resolved(const MultiheadAttentionOptions& options) {
  const AlgebraSpec& algebra = options.algebra();
  const bool shares_table = !algebra.learned && algebra.n > 1;
  switch (options.attention()) {
    case AttentionKind::automatic:
      return shares_table && options.split() == HeadSplit::inside ? AttentionKind::componentwise
                                                                  : AttentionKind::real;
    case AttentionKind::componentwise:
      require(!algebra.learned || algebra.n == 1,
              "MultiheadAttention: attention = componentwise needs a fixed algebra, whose table Q and K "
              "share, got ",
              algebra.text(), " (take attention = real, as PHM does)");
      require(options.split() == HeadSplit::inside || algebra.n == 1,
              "MultiheadAttention: attention = componentwise needs split = inside, so that heads hold whole "
              "hypercomplex "
              "numbers, got split = printed (take attention = real)");
      return shares_table ? AttentionKind::componentwise : AttentionKind::real;
    case AttentionKind::real:
      break;
  }
  return AttentionKind::real;
}

/// The scores' softmax where at least one key counts.
at::Tensor attention_weights(const at::Tensor& scores, const at::Tensor& allowed) {
  if (!allowed.defined()) return scores.softmax(-1);
  return scores.masked_fill(allowed.logical_not(), -std::numeric_limits<double>::infinity()).softmax(-1);
}

}  // namespace

const char* name(AttentionKind kind) {
  return name_in(kKinds, kind);
}
AttentionKind parse_attention_kind(std::string_view text) {
  return parse_in(kKinds, "attention", text);
}
const char* name(HeadSplit split) {
  return name_in(kSplits, split);
}
HeadSplit parse_head_split(std::string_view text) {
  return parse_in(kSplits, "split", text);
}

MultiheadAttentionImpl::MultiheadAttentionImpl(MultiheadAttentionOptions options)
    : options(std::move(options)), kind_(resolved(this->options)) {
  const int64_t n = this->options.algebra().n, heads = this->options.heads();
  require(heads >= 1, "MultiheadAttention: heads must be at least 1, got ", heads);
  require_probability("MultiheadAttention", "dropout", this->options.dropout());
  if (this->options.split() == HeadSplit::inside)
    require_divisible("MultiheadAttention", "width", this->options.width(), n * heads, "n * heads");
  else
    require_divisible("MultiheadAttention", "width", this->options.width(), heads, "heads");
  if (kind_ == AttentionKind::componentwise) {
    const algebra::Algebra& algebra = algebra::get(this->options.algebra().name);
    // Rows (c, j), columns i: what turns the components of Q into the queries of the n maps.
    mixing_ = torch::tensor(algebra.table(), torch::kDouble).view({n, n * n}).t().contiguous();
    maps_ = n;
  }
  MultiheadAttentionImpl::reset();
}

void MultiheadAttentionImpl::reset() {
  const int64_t width = options.width();
  const auto linear = [this](int64_t in, int64_t out) {
    return Linear(LinearOptions(in, out)
                      .algebra(options.algebra())
                      .bias(options.bias())
                      .initialiser(options.initialiser())
                      .way(options.way()));
  };
  if (options.packed()) {
    packed = register_module("packed", linear(width, 3 * width));
  } else {
    query = register_module("query", linear(width, width));
    key = register_module("key", linear(width, width));
    value = register_module("value", linear(width, width));
  }
  output = register_module("output", linear(width, width));
}

void MultiheadAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::MultiheadAttention(" << options.width() << ", heads=" << options.heads()
         << ", algebra=" << options.algebra().text() << ", attention=" << nn::name(kind_)
         << ", split=" << nn::name(options.split()) << ", dropout=" << options.dropout() << ")";
}

std::tuple<at::Tensor, at::Tensor> MultiheadAttentionImpl::forward(const at::Tensor& query_input,
                                                                   const at::Tensor& key_input,
                                                                   const at::Tensor& value_input,
                                                                   const at::Tensor& padding,
                                                                   bool need_weights) {
  for (const at::Tensor* input : {&query_input, &key_input, &value_input})
    TORCH_CHECK(input->dim() == 3 && input->size(2) == options.width(),
                "MultiheadAttention: query, key and value must be (batch, length, width = ", options.width(),
                "), got ", input->sizes());
  const int64_t batch = query_input.size(0), length = query_input.size(1), keys = key_input.size(1);
  TORCH_CHECK(!padding.defined() || (padding.dim() == 2 && padding.size(0) == batch &&
                                     padding.size(1) == keys && padding.scalar_type() == at::kBool),
              "MultiheadAttention: padding must be bool (batch, keys) = (", batch, ", ", keys, "), got ",
              padding.scalar_type(), " ", padding.sizes());
  const int64_t heads = options.heads(), n = options.split() == HeadSplit::inside ? options.algebra().n : 1;
  const int64_t head_width = options.width() / heads, m = head_width / n;

  at::Tensor Q, K, V;  // (B, L or S, n, h, m)
  if (options.packed()) {
    TORCH_CHECK(query_input.is_same(key_input) && query_input.is_same(value_input),
                "MultiheadAttention: a packed projection serves self-attention only: query, key and value "
                "must be one "
                "tensor (set packed = false)");
    const at::Tensor parts = packed->forward(query_input).view({batch, length, n, 3, heads, m});
    Q = parts.select(3, 0), K = parts.select(3, 1), V = parts.select(3, 2);
  } else {
    Q = query->forward(query_input).view({batch, length, n, heads, m});
    K = key->forward(key_input).view({batch, keys, n, heads, m});
    V = value->forward(value_input).view({batch, keys, n, heads, m});
  }

  // A text without a single key would make the softmax 0/0: let it see all keys, and zero what comes of it.
  at::Tensor allowed, empty;  // (B, 1, 1, S), (B, 1, 1, 1, 1)
  if (padding.defined()) {
    const at::Tensor no_key = padding.all(-1, /*keepdim=*/true);
    allowed = padding.logical_not().logical_or(no_key).view({batch, 1, 1, keys});
    empty = no_key.view({batch, 1, 1, 1, 1});
  }

  // All maps of a head read the same keys: their queries stand below each other, (B, h, maps L, d_h).
  const at::Tensor queries =
      maps_ == 1 ? Q.permute({0, 3, 1, 2, 4}).reshape({batch, heads, length, head_width})
                 : at::matmul(mixing_.to(Q.options()), Q.reshape({batch, length, n, heads * m}))
                       .view({batch, length, maps_, n, heads, m})  // c, j
                       .permute({0, 4, 2, 1, 3, 5})
                       .reshape({batch, heads, maps_ * length, head_width});
  const at::Tensor all_keys = K.permute({0, 3, 1, 2, 4}).reshape({batch, heads, keys, head_width});
  const bool drops = is_training() && options.dropout() > 0;

  at::Tensor mixed;    // (B, h, L, n, m)
  at::Tensor weights;  // (B, h, maps, L, S)
  if (need_weights || (maps_ > 1 && drops)) {
    const at::Tensor scores = at::matmul(queries, all_keys.transpose(-1, -2)) / std::sqrt(head_width);
    weights = attention_weights(scores, allowed).view({batch, heads, maps_, length, keys});
    const at::Tensor dropped = drops ? at::dropout(weights, options.dropout(), true) : weights;
    const at::Tensor values = V.permute({0, 3, 2, 1, 4});  // (B, h, n, S, m)
    mixed = at::matmul(dropped, values).transpose(2, 3);   // one map serves all components by broadcasting
    if (empty.defined()) weights = weights.masked_fill(empty, 0);
  } else {
    // Each map weights all of V and keeps its own component: more products than needed, and still several
    // times faster than n maps with n copies of K, because the fused kernel never writes the scores.
    const at::Tensor values = V.permute({0, 3, 1, 2, 4}).reshape({batch, heads, keys, head_width});
    mixed = at::scaled_dot_product_attention(queries, all_keys, values,
                                             allowed.defined() ? std::optional(allowed) : std::nullopt,
                                             drops ? options.dropout() : 0)
                .view({batch, heads, maps_, length, n, m});
    mixed = maps_ == 1 ? mixed.select(2, 0) : mixed.diagonal(0, 2, 4).transpose(-1, -2);
  }
  if (empty.defined()) mixed = mixed.masked_fill(empty, 0);
  const at::Tensor joined = mixed.permute({0, 2, 3, 1, 4}).reshape({batch, length, options.width()});
  return {output->forward(joined), need_weights ? weights : at::Tensor()};
}

at::Tensor MultiheadAttentionImpl::self_attention(const at::Tensor& x, const at::Tensor& padding) {
  return std::get<0>(forward(x, x, x, padding));
}

}  // namespace quatrain::nn
