#include "quatrain/nn/attention.h"

#include <torch/types.h>

#include "nn/check.h"
#include "support/enum_names.h"

namespace quatrain::nn {

namespace {

constexpr EnumNames<AttentionKind, 3> kKinds{{{AttentionKind::automatic, "automatic"},
                                              {AttentionKind::componentwise, "componentwise"},
                                              {AttentionKind::real, "real"}}};
constexpr EnumNames<HeadSplit, 2> kSplits{{{HeadSplit::inside, "inside"}, {HeadSplit::printed, "printed"}}};

// Checks the options too.
AttentionKind kind_of(const MultiheadAttentionOptions& options) {
  const std::string problem = attention_problem(options.attention(), options.algebra(), options.split());
  require(problem.empty(), "MultiheadAttention: attention = componentwise ", problem,
          " (take attention = real)");
  return attention_kind(options.attention(), options.algebra(), options.split());
}

}  // namespace

const char* name(AttentionKind kind) {
  return name_of(kKinds, kind);
}
AttentionKind parse_attention_kind(std::string_view text) {
  return parse_name(kKinds, "attention", text);
}
const char* name(HeadSplit split) {
  return name_of(kSplits, split);
}
HeadSplit parse_head_split(std::string_view text) {
  return parse_name(kSplits, "split", text);
}

std::string attention_problem(AttentionKind asked, const AlgebraSpec& algebra, HeadSplit split,
                              const char* table) {
  if (asked != AttentionKind::componentwise || algebra.n == 1) return {};
  if (algebra.learned) return "needs a fixed algebra, got " + algebra.text();
  if (split != HeadSplit::inside)
    return std::string("needs ") + table + "split = 'inside', got '" + name(split) + "'";
  return {};
}

AttentionKind attention_kind(AttentionKind asked, const AlgebraSpec& algebra, HeadSplit split) {
  const bool componentwise = algebra.n > 1 && !algebra.learned && split == HeadSplit::inside;
  return asked == AttentionKind::real || !componentwise ? AttentionKind::real : AttentionKind::componentwise;
}

MultiheadAttentionImpl::MultiheadAttentionImpl(MultiheadAttentionOptions options)
    : options(std::move(options)), kind_(kind_of(this->options)) {
  const int64_t n = this->options.algebra().n, heads = this->options.heads();
  require(heads >= 1, "MultiheadAttention: heads must be at least 1, got ", heads);
  require_probability("MultiheadAttention", "dropout", this->options.dropout());
  if (this->options.split() == HeadSplit::inside)
    require_divisible("MultiheadAttention", "width", this->options.width(), n * heads, "n * heads");
  else
    require_divisible("MultiheadAttention", "width", this->options.width(), heads, "heads");
  MultiheadAttentionImpl::reset();
}

void MultiheadAttentionImpl::reset() {
  const int64_t width = options.width();
  const auto linear = [&](int64_t maps = 1) {
    return Linear(LinearOptions(width, maps * width).like(options).maps(maps));
  };
  if (options.packed()) {
    packed = register_module("packed", linear(3));
  } else {
    query = register_module("query", linear());
    key = register_module("key", linear());
    value = register_module("value", linear());
  }
  output = register_module("output", linear());
}

void MultiheadAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::MultiheadAttention(" << options.width() << ", heads=" << options.heads()
         << ", algebra=" << options.algebra().text() << ", attention=" << nn::name(kind_)
         << ", split=" << nn::name(options.split()) << ", dropout=" << options.dropout() << ")";
}

std::vector<at::Tensor> MultiheadAttentionImpl::heads_of(Linear& layer, const at::Tensor& x,
                                                         int64_t parts) const {
  TORCH_CHECK(x.dim() == 3 && x.size(2) == options.width(),
              "MultiheadAttention: query, key and value must be (batch, length, width = ", options.width(),
              ") or (length, width), got ", x.sizes());
  return ops::cut_heads(layer->forward(x), options.heads(), components(), parts);
}

int64_t MultiheadAttentionImpl::components() const {
  return options.split() == HeadSplit::inside ? options.algebra().n : 1;
}

std::string MultiheadAttentionImpl::score_algebra() const {
  return kind_ == AttentionKind::componentwise ? options.algebra().name : "real";
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> MultiheadAttentionImpl::project(const at::Tensor& x) {
  if (options.packed()) {
    const std::vector<at::Tensor> heads = heads_of(packed, x, 3);
    return {heads[0], heads[1], heads[2]};
  }
  const at::Tensor Q = project_query(x);
  const auto [K, V] = project_key_value(x, x);
  return {Q, K, V};
}

at::Tensor MultiheadAttentionImpl::project_query(const at::Tensor& x) {
  TORCH_CHECK(!options.packed(),
              "MultiheadAttention: a packed projection makes query, key and value of one tensor together "
              "(call project, or set packed = false)");
  return heads_of(query, x, 1)[0];
}

std::tuple<at::Tensor, at::Tensor> MultiheadAttentionImpl::project_key_value(const at::Tensor& key_input,
                                                                             const at::Tensor& value_input) {
  TORCH_CHECK(!options.packed(),
              "MultiheadAttention: a packed projection makes query, key and value of one tensor together "
              "(call project, or set packed = false)");
  return {heads_of(key, key_input, 1)[0], heads_of(value, value_input, 1)[0]};
}

ops::AttentionOptions MultiheadAttentionImpl::with_own(ops::AttentionOptions how) const {
  how.algebra = score_algebra();
  how.dropout = is_training() ? options.dropout() : 0;
  return how;
}

std::tuple<at::Tensor, at::Tensor> MultiheadAttentionImpl::attend(const at::Tensor& Q, const at::Tensor& K,
                                                                  const at::Tensor& V,
                                                                  ops::AttentionOptions how,
                                                                  bool need_weights) {
  how = with_own(std::move(how));
  if (!need_weights) return {output->forward(ops::hypercomplex_attention(Q, K, V, how)), {}};
  const auto [mixed, weights] = ops::hypercomplex_attention_with_weights(Q, K, V, how);
  return {output->forward(mixed), weights};
}

at::Tensor MultiheadAttentionImpl::word_heads_of(Linear& layer, const at::Tensor& x) const {
  TORCH_CHECK(x.dim() == 2 && x.size(1) == options.width(),
              "MultiheadAttention: a word of each row must be (rows, width = ", options.width(), "), got ",
              x.sizes());
  const int64_t n = components(), heads = options.heads();
  return layer->forward(x).view({x.size(0), n, heads, options.width() / n / heads});
}

at::Tensor MultiheadAttentionImpl::attend_word(const at::Tensor& query, const AttentionCache& cache) {
  // Under autocast queries come in bfloat16; a cache has the type of the weights.
  const at::ScalarType type = cache.keys.scalar_type();
  return output->forward(ops::cached_attention(query.scalar_type() == type ? query : query.to(type),
                                               cache.keys, cache.values, cache.table, cache.lengths,
                                               score_algebra()));
}

at::Tensor MultiheadAttentionImpl::step(const at::Tensor& x, int64_t place, const AttentionCache& cache) {
  at::Tensor Q, K, V;
  if (options.packed()) {
    const std::vector<at::Tensor> heads = heads_of(packed, x.unsqueeze(1), 3);
    Q = heads[0].squeeze(1), K = heads[1].squeeze(1), V = heads[2].squeeze(1);
  } else {
    Q = word_heads_of(query, x), K = word_heads_of(key, x), V = word_heads_of(value, x);
  }
  ops::keep_words(cache.keys, place, K);
  ops::keep_words(cache.values, place, V);
  return attend_word(Q, cache);
}

at::Tensor MultiheadAttentionImpl::cross_step(const at::Tensor& x, const AttentionCache& cache) {
  return attend_word(word_heads_of(query, x), cache);
}

AttentionCache MultiheadAttentionImpl::make_cache(int64_t slots, int64_t capacity) const {
  const int64_t n = components(), heads = options.heads();
  const std::vector<int64_t> sizes{slots, capacity, n, heads, options.width() / n / heads};
  const auto like = output->S.options().requires_grad(false);
  return {at::empty(sizes, like), at::empty(sizes, like), {}, {}};
}

std::tuple<at::Tensor, at::Tensor> MultiheadAttentionImpl::forward(
    const at::Tensor& query_input, const at::Tensor& key_input, const at::Tensor& value_input,
    const at::Tensor& padding, bool need_weights, const at::Tensor& mask, bool causal) {
  if (query_input.dim() == 2) {
    const auto batched = [](const at::Tensor& x) { return x.defined() ? x.unsqueeze(0) : x; };
    const at::Tensor q = batched(query_input);
    const at::Tensor k = key_input.is_same(query_input) ? q : batched(key_input);
    const at::Tensor v = value_input.is_same(query_input) ? q : batched(value_input);
    const auto [y, weights] = forward(q, k, v, batched(padding), need_weights, mask, causal);
    return {y.squeeze(0), weights.defined() ? weights.squeeze(0) : weights};
  }
  const ops::AttentionOptions how{.padding = padding, .mask = mask, .causal = causal};
  if (options.packed()) {
    TORCH_CHECK(query_input.is_same(key_input) && query_input.is_same(value_input),
                "MultiheadAttention: a packed projection serves self-attention only: query, key and value "
                "must be one tensor (set packed = false)");
    const auto [Q, K, V] = project(query_input);
    return attend(Q, K, V, how, need_weights);
  }
  const at::Tensor Q = project_query(query_input);
  const auto [K, V] = project_key_value(key_input, value_input);
  return attend(Q, K, V, how, need_weights);
}

at::Tensor MultiheadAttentionImpl::self_attention(const at::Tensor& x, const at::Tensor& padding,
                                                  const at::Tensor& mask, bool causal) {
  return std::get<0>(forward(x, x, x, padding, false, mask, causal));
}

at::Tensor MultiheadAttentionImpl::self_attention_of_words(const at::Tensor& rows, const Words& words,
                                                           bool causal) {
  const auto [Q, K, V] = project(rows);
  const at::Tensor mixed =
      ops::hypercomplex_attention(words.places(Q), words.places(K), words.places(V),
                                  with_own({.padding = words.padding(), .causal = causal}));
  return output->forward(words.rows(mixed));
}

}  // namespace quatrain::nn
