#include "quatrain/nn/encoder.h"

#include <torch/nn/modules/container/modulelist.h>
#include <torch/types.h>

#include "nn/check.h"
#include "nn/residual.h"
#include "support/enum_names.h"

namespace quatrain::nn {

namespace {

constexpr EnumNames<NormStyle, 3> kNorms{
    {{NormStyle::post, "post"}, {NormStyle::pre, "pre"}, {NormStyle::phydi, "phydi"}}};
constexpr EnumNames<Scope, 2> kScopes{{{Scope::full, "full"}, {Scope::partial, "partial"}}};

template <class Layer>
at::Tensor forward_by_words(Layer& layer, const at::Tensor& x, const at::Tensor& padding, bool causal) {
  if (x.dim() == 2) {
    const at::Tensor one = padding.defined() ? padding.unsqueeze(0) : padding;
    return forward_by_words(layer, x.unsqueeze(0), one, causal).squeeze(0);
  }
  const Words words(padding);
  return words.places(layer.forward_words(words.rows(x), words, causal));
}

}  // namespace

const char* name(NormStyle style) {
  return name_of(kNorms, style);
}
NormStyle parse_norm_style(std::string_view text) {
  return parse_name(kNorms, "norm", text);
}
const char* name(Scope scope) {
  return name_of(kScopes, scope);
}
Scope parse_scope(std::string_view text) {
  return parse_name(kScopes, "scope", text);
}

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options)
    : options(std::move(options)) {
  check_block("TransformerEncoderLayer", this->options);
  TransformerEncoderLayerImpl::reset();
}

void TransformerEncoderLayerImpl::reset() {
  attention = register_module(
      "attention",
      MultiheadAttention(MultiheadAttentionOptions(options.width(), options.heads()).like(options)));
  feed_forward = register_module("feed_forward", make_feed_forward(options));
  if (options.norm() == NormStyle::phydi) {
    alpha = register_parameter("alpha", torch::zeros({}));
  } else {
    norm1 = register_module("norm1", make_norm(options));
    norm2 = register_module("norm2", make_norm(options));
  }
}

void TransformerEncoderLayerImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::TransformerEncoderLayer(" << options.width()
         << ", norm=" << nn::name(options.norm()) << ", scope=" << nn::name(options.scope())
         << ", algebra=" << options.algebra().text() << ", dropout=" << options.dropout() << ")";
}

at::Tensor TransformerEncoderLayerImpl::drop(const at::Tensor& x) const {
  return dropout(x, options.dropout(), is_training(), options.algebra().n, options.dropout_per_unit());
}

template <class Self>
at::Tensor TransformerEncoderLayerImpl::sub_layers(const at::Tensor& x, const Self& self) {
  const auto& block = options.block_settings;
  const at::Tensor y =
      residual_sum(block, norm1, alpha, x, x, [&](const at::Tensor& v) { return drop(self(v)); });
  return residual_sum(block, norm2, alpha, x, y,
                      [&](const at::Tensor& v) { return drop(feed_forward->forward(v)); });
}

at::Tensor TransformerEncoderLayerImpl::forward(const at::Tensor& x, const at::Tensor& padding, bool causal) {
  return forward_by_words(*this, x, padding, causal);
}

at::Tensor TransformerEncoderLayerImpl::forward_words(const at::Tensor& rows, const Words& words,
                                                      bool causal) {
  return sub_layers(
      rows, [&](const at::Tensor& v) { return attention->self_attention_of_words(v, words, causal); });
}

at::Tensor TransformerEncoderLayerImpl::step(const at::Tensor& x, int64_t place,
                                             const AttentionCache& cache) {
  return sub_layers(x, [&](const at::Tensor& v) { return attention->step(v, place, cache); });
}

TransformerEncoderImpl::TransformerEncoderImpl(TransformerEncoderOptions options)
    : options(std::move(options)) {
  require(this->options.layers() >= 1, "TransformerEncoder: layers must be at least 1, got ",
          this->options.layers());
  TransformerEncoderImpl::reset();
}

void TransformerEncoderImpl::reset() {
  torch::nn::ModuleList list;
  for (int64_t layer = 0; layer < options.layers(); ++layer)
    list->push_back(TransformerEncoderLayer(options.layer()));
  layers = register_module("layers", list);
  if (options.layer().norm() == NormStyle::pre) norm = register_module("norm", make_norm(options.layer()));
}

void TransformerEncoderImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::TransformerEncoder(layers=" << options.layers() << ")";
}

at::Tensor TransformerEncoderImpl::forward(const at::Tensor& x, const at::Tensor& padding, bool causal) {
  return forward_by_words(*this, x, padding, causal);
}

at::Tensor TransformerEncoderImpl::forward_words(const at::Tensor& rows, const Words& words, bool causal) {
  at::Tensor y = rows;
  for (const auto& layer : *layers)
    y = layer->as<TransformerEncoderLayerImpl>()->forward_words(y, words, causal);
  return norm ? norm->forward(y) : y;
}

}  // namespace quatrain::nn
