#include "quatrain/nn/encoder.h"

#include <torch/torch.h>

#include "nn/enum_names.h"

namespace quatrain::nn {

namespace {

constexpr EnumNames<NormStyle, 3> kNorms{
    {{NormStyle::post, "post"}, {NormStyle::pre, "pre"}, {NormStyle::phydi, "phydi"}}};
constexpr EnumNames<Scope, 2> kScopes{{{Scope::full, "full"}, {Scope::partial, "partial"}}};

LayerNorm make_norm(const TransformerEncoderLayerOptions& options) {
  return LayerNorm(
      LayerNormOptions(options.width()).n(options.algebra().n).per_component(options.norm_per_component()));
}

}  // namespace

const char* name(NormStyle style) {
  return name_in(kNorms, style);
}
NormStyle parse_norm_style(std::string_view text) {
  return parse_in(kNorms, "norm", text);
}
const char* name(Scope scope) {
  return name_in(kScopes, scope);
}
Scope parse_scope(std::string_view text) {
  return parse_in(kScopes, "scope", text);
}

TransformerEncoderLayerImpl::TransformerEncoderLayerImpl(TransformerEncoderLayerOptions options)
    : options(std::move(options)) {
  require_probability("TransformerEncoderLayer", "dropout", this->options.dropout());
  require(!this->options.printed() || this->options.norm() != NormStyle::pre,
          "TransformerEncoderLayer: printed is a form of norm = post or phydi, got norm = pre");
  TransformerEncoderLayerImpl::reset();
}

void TransformerEncoderLayerImpl::reset() {
  attention = register_module(
      "attention",
      MultiheadAttention(MultiheadAttentionOptions(options.width(), options.heads()).like(options)));
  auto feed = FeedForwardOptions(options.width(), options.feed_forward()).like(options);
  if (options.scope() == Scope::partial) feed.algebra(AlgebraSpec());
  feed_forward = register_module("feed_forward", FeedForward(feed));
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

at::Tensor TransformerEncoderLayerImpl::forward(const at::Tensor& x, const at::Tensor& padding) {
  const auto attend = [&](const at::Tensor& y) { return drop(attention->self_attention(y, padding)); };
  const auto feed = [&](const at::Tensor& y) { return drop(feed_forward->forward(y)); };
  switch (options.norm()) {
    case NormStyle::post: {
      const at::Tensor y = norm1->forward(x + attend(x));
      return norm2->forward((options.printed() ? x : y) + feed(y));
    }
    case NormStyle::pre: {
      const at::Tensor y = x + attend(norm1->forward(x));
      return y + feed(norm2->forward(y));
    }
    case NormStyle::phydi:
      break;
  }
  const at::Tensor y = x + alpha * attend(x);
  return (options.printed() ? x : y) + alpha * feed(y);
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

at::Tensor TransformerEncoderImpl::forward(const at::Tensor& x, const at::Tensor& padding) {
  at::Tensor y = x;
  for (const auto& layer : *layers) y = layer->as<TransformerEncoderLayerImpl>()->forward(y, padding);
  return norm ? norm->forward(y) : y;
}

}  // namespace quatrain::nn
