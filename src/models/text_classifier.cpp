#include "quatrain/models/text_classifier.h"

#include <torch/nn/cloneable.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>

#include "nn/check.h"
#include "quatrain/layer_ops.h"
#include "quatrain/models/positions.h"

namespace quatrain::models {

TextClassifierImpl::TextClassifierImpl(TextClassifierOptions options) : options(std::move(options)) {
  const TextClassifierOptions& o = this->options;
  nn::require(o.classes() >= 1, "TextClassifier: classes must be at least 1, got ", o.classes());
  nn::require(o.padding_id() >= 0 && o.padding_id() < o.vocabulary_size(),
              "TextClassifier: padding_id must be a token of the vocabulary of ", o.vocabulary_size(),
              ", got ", o.padding_id());
  nn::require(o.pretrained_width() >= 0, "TextClassifier: pretrained_width must not be negative, got ",
              o.pretrained_width());
  nn::require(!o.freeze_pretrained() || o.pretrained_width() > 0,
              "TextClassifier: freeze_pretrained needs pretrained embeddings (set pretrained_width)");
  nn::require_probability("TextClassifier", "dropout", o.dropout());
  positions_ = sinusoidal_positions(o.max_length(), o.width());
  TextClassifierImpl::reset();
}

void TextClassifierImpl::reset() {
  const bool pretrained = options.pretrained_width() > 0;
  const int64_t embedded = pretrained ? options.pretrained_width() : options.width();
  embedding = register_module(
      "embedding", torch::nn::Embedding(torch::nn::EmbeddingOptions(options.vocabulary_size(), embedded)
                                            .padding_idx(options.padding_id())));
  {
    const at::NoGradGuard no_grad;
    if (!pretrained && options.embedding_scale())
      embedding->weight.normal_(0, 1 / std::sqrt(static_cast<double>(embedded)));
    embedding->weight[options.padding_id()].zero_();
  }
  embedding->weight.set_requires_grad(!options.freeze_pretrained());
  if (pretrained)
    projection = register_module(
        "projection",
        nn::Linear(
            nn::LinearOptions(embedded, options.width()).algebra("real").initialiser(options.initialiser())));
  const auto layer = nn::TransformerEncoderLayerOptions(options.width(), options.heads()).like(options);
  encoder = register_module("encoder",
                            nn::TransformerEncoder(nn::TransformerEncoderOptions(layer, options.layers())));
  head = register_module("head", nn::Linear(nn::LinearOptions(options.width(), options.classes())
                                                .algebra("real")
                                                .initialiser(options.initialiser())));
}

void TextClassifierImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::models::TextClassifier(vocabulary=" << options.vocabulary_size()
         << ", classes=" << options.classes() << ", width=" << options.width()
         << ", algebra=" << options.algebra().text() << ")";
}

std::shared_ptr<torch::nn::Module> TextClassifierImpl::clone(
    const std::optional<torch::Device>& device) const {
  auto copy = torch::nn::Cloneable<TextClassifierImpl>::clone(device);
  // Torch's clone of a child forgets what is frozen.
  static_cast<TextClassifierImpl&>(*copy).embedding->weight.set_requires_grad(
      embedding->weight.requires_grad());
  return copy;
}

at::Tensor TextClassifierImpl::forward(const at::Tensor& tokens, const at::Tensor& padding) {
  TORCH_CHECK(tokens.dim() == 2, "TextClassifier: tokens must be (batch, length), got ", tokens.sizes());
  const at::Tensor padded = padding.defined() ? padding : tokens.eq(options.padding_id());
  TORCH_CHECK(padded.sizes() == tokens.sizes() && padded.scalar_type() == at::kBool,
              "TextClassifier: padding must be bool with the sizes of tokens ", tokens.sizes(), ", got ",
              padded.scalar_type(), " ", padded.sizes());
  const int64_t length = tokens.size(1);
  at::Tensor x = at::embedding(embedding->weight, tokens, options.padding_id());
  if (projection)
    x = at::tanh(projection->forward(x));
  else if (options.embedding_scale())
    x = x * std::sqrt(static_cast<double>(options.width()));
  const at::Tensor positions = length <= options.max_length() ? positions_.narrow(0, 0, length)
                                                              : sinusoidal_positions(length, options.width());
  x = nn::dropout(x + positions.to(x.options()), options.dropout(), is_training(), options.algebra().n,
                  options.dropout_per_unit());
  x = encoder->forward(x, padded);
  return head->forward(ops::masked_mean(x, padded));
}

void TextClassifierImpl::set_embeddings(const at::Tensor& vectors) {
  const at::NoGradGuard no_grad;
  TORCH_CHECK(vectors.sizes() == embedding->weight.sizes(), "TextClassifier: embeddings must be ",
              embedding->weight.sizes(), ", got ", vectors.sizes());
  embedding->weight.copy_(vectors);
  embedding->weight[options.padding_id()].zero_();
}

}  // namespace quatrain::models
