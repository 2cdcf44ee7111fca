#include "quatrain/nn/decoder.h"

#include <torch/nn/modules/container/modulelist.h>
#include <torch/types.h>

#include "nn/check.h"
#include "nn/residual.h"

namespace quatrain::nn {

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(TransformerDecoderLayerOptions options)
    : options(std::move(options)) {
  check_block("TransformerDecoderLayer", this->options);
  TransformerDecoderLayerImpl::reset();
}

void TransformerDecoderLayerImpl::reset() {
  const auto attend = MultiheadAttentionOptions(options.width(), options.heads()).like(options);
  attention = register_module("attention", MultiheadAttention(attend));
  auto across = attend;
  cross_attention = register_module("cross_attention", MultiheadAttention(across.packed(false)));
  feed_forward = register_module("feed_forward", make_feed_forward(options));
  if (options.norm() == NormStyle::phydi) {
    alpha = register_parameter("alpha", torch::zeros({}));
  } else {
    norm1 = register_module("norm1", make_norm(options));
    norm2 = register_module("norm2", make_norm(options));
    norm3 = register_module("norm3", make_norm(options));
  }
}

void TransformerDecoderLayerImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::TransformerDecoderLayer(" << options.width()
         << ", norm=" << nn::name(options.norm()) << ", scope=" << nn::name(options.scope())
         << ", algebra=" << options.algebra().text() << ", dropout=" << options.dropout() << ")";
}

at::Tensor TransformerDecoderLayerImpl::drop(const at::Tensor& x) const {
  return dropout(x, options.dropout(), is_training(), options.algebra().n, options.dropout_per_unit());
}

template <class Self, class Cross>
at::Tensor TransformerDecoderLayerImpl::sub_layers(const at::Tensor& x, const Self& self,
                                                   const Cross& cross) {
  const auto& block = options.block_settings;
  at::Tensor y = residual_sum(block, norm1, alpha, x, x, [&](const at::Tensor& v) { return drop(self(v)); });
  y = residual_sum(block, norm2, alpha, x, y, [&](const at::Tensor& v) { return drop(cross(v)); });
  return residual_sum(block, norm3, alpha, x, y,
                      [&](const at::Tensor& v) { return drop(feed_forward->forward(v)); });
}

at::Tensor TransformerDecoderLayerImpl::forward(const at::Tensor& x, const at::Tensor& memory,
                                                const at::Tensor& padding, const at::Tensor& memory_padding) {
  return sub_layers(
      x, [&](const at::Tensor& v) { return attention->self_attention(v, padding, {}, /*causal=*/true); },
      [&](const at::Tensor& v) {
        return std::get<0>(cross_attention->forward(v, memory, memory, memory_padding));
      });
}

std::tuple<at::Tensor, at::Tensor> TransformerDecoderLayerImpl::forward_with_weights(
    const at::Tensor& x, const at::Tensor& memory, const at::Tensor& padding,
    const at::Tensor& memory_padding) {
  at::Tensor weights;
  const at::Tensor y = sub_layers(
      x, [&](const at::Tensor& v) { return attention->self_attention(v, padding, {}, /*causal=*/true); },
      [&](const at::Tensor& v) {
        auto [mixed, seen] =
            cross_attention->forward(v, memory, memory, memory_padding, /*need_weights=*/true);
        weights = std::move(seen);
        return mixed;
      });
  return {y, weights};
}

at::Tensor TransformerDecoderLayerImpl::step(const at::Tensor& x, int64_t place, const AttentionCache& self,
                                             const AttentionCache& cross) {
  return sub_layers(
      x, [&](const at::Tensor& v) { return attention->step(v, place, self); },
      [&](const at::Tensor& v) { return cross_attention->cross_step(v, cross); });
}

TransformerDecoderImpl::TransformerDecoderImpl(TransformerDecoderOptions options)
    : options(std::move(options)) {
  require(this->options.layers() >= 1, "TransformerDecoder: layers must be at least 1, got ",
          this->options.layers());
  TransformerDecoderImpl::reset();
}

void TransformerDecoderImpl::reset() {
  torch::nn::ModuleList list;
  for (int64_t layer = 0; layer < options.layers(); ++layer)
    list->push_back(TransformerDecoderLayer(options.layer()));
  layers = register_module("layers", list);
  if (options.layer().norm() == NormStyle::pre) norm = register_module("norm", make_norm(options.layer()));
}

void TransformerDecoderImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::TransformerDecoder(layers=" << options.layers() << ")";
}

at::Tensor TransformerDecoderImpl::forward(const at::Tensor& x, const at::Tensor& memory,
                                           const at::Tensor& padding, const at::Tensor& memory_padding) {
  at::Tensor y = x;
  for (const auto& layer : *layers)
    y = layer->as<TransformerDecoderLayerImpl>()->forward(y, memory, padding, memory_padding);
  return norm ? norm->forward(y) : y;
}

}  // namespace quatrain::nn
