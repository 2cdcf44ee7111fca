#include "quatrain/nn/attention.h"

#include <torch/torch.h>

#include "nn/enum_names.h"
#include "quatrain/layer_ops.h"

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

std::tuple<at::Tensor, at::Tensor> MultiheadAttentionImpl::forward(const at::Tensor& query_input,
                                                                   const at::Tensor& key_input,
                                                                   const at::Tensor& value_input,
                                                                   const at::Tensor& padding,
                                                                   bool need_weights) {
  for (const at::Tensor* input : {&query_input, &key_input, &value_input})
    TORCH_CHECK(input->dim() == 3 && input->size(2) == options.width(),
                "MultiheadAttention: query, key and value must be (batch, length, width = ", options.width(),
                "), got ", input->sizes());
  const int64_t batch = query_input.size(0), keys = key_input.size(1);
  TORCH_CHECK(!padding.defined() || (padding.dim() == 2 && padding.size(0) == batch &&
                                     padding.size(1) == keys && padding.scalar_type() == at::kBool),
              "MultiheadAttention: padding must be bool (batch, keys) = (", batch, ", ", keys, "), got ",
              padding.scalar_type(), " ", padding.sizes());
  const int64_t heads = options.heads(), n = options.split() == HeadSplit::inside ? options.algebra().n : 1;

  std::vector<at::Tensor> cut;  // Q, K and V
  if (options.packed()) {
    TORCH_CHECK(query_input.is_same(key_input) && query_input.is_same(value_input),
                "MultiheadAttention: a packed projection serves self-attention only: query, key and value "
                "must be one "
                "tensor (set packed = false)");
    cut = ops::cut_heads(packed->forward(query_input), heads, n, 3);
  } else {
    for (const auto& [layer, input] :
         {std::pair(&query, &query_input), {&key, &key_input}, {&value, &value_input}})
      cut.push_back(ops::cut_heads((*layer)->forward(*input), heads, n)[0]);
  }
  const std::string algebra = kind_ == AttentionKind::componentwise ? options.algebra().name : "real";
  const double dropped = is_training() ? options.dropout() : 0;
  if (need_weights) {
    const auto [mixed, weights] =
        ops::hypercomplex_attention_with_weights(cut[0], cut[1], cut[2], algebra, padding, dropped);
    return {output->forward(mixed), weights};
  }
  return {output->forward(ops::hypercomplex_attention(cut[0], cut[1], cut[2], algebra, padding, dropped)),
          {}};
}

at::Tensor MultiheadAttentionImpl::self_attention(const at::Tensor& x, const at::Tensor& padding) {
  return std::get<0>(forward(x, x, x, padding));
}

}  // namespace quatrain::nn
