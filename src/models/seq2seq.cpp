#include "quatrain/models/seq2seq.h"

#include <torch/types.h>

#include "models/sequence_parts.h"
#include "nn/check.h"

namespace quatrain::models {

Seq2SeqImpl::Seq2SeqImpl(Seq2SeqOptions options) : options(std::move(options)) {
  const Seq2SeqOptions& o = this->options;
  nn::require(o.source_vocabulary() >= 1 && o.target_vocabulary() >= 1,
              "Seq2Seq: vocabularies must have at least 1 token, got ", o.source_vocabulary(), " and ",
              o.target_vocabulary());
  nn::require(!o.share_embeddings() || o.source_vocabulary() == o.target_vocabulary(),
              "Seq2Seq: share_embeddings needs one vocabulary for source and target, got ",
              o.source_vocabulary(), " and ", o.target_vocabulary(), " tokens");
  Seq2SeqImpl::reset();
}

void Seq2SeqImpl::reset() {
  if (!options.share_embeddings())
    source = register_module("source", make_inputs(options, options.source_vocabulary()));
  target = register_module("target", make_inputs(options, options.target_vocabulary()));
  encoder = register_module(
      "encoder", nn::TransformerEncoder(nn::TransformerEncoderOptions(
                     layer_options<nn::TransformerEncoderLayerOptions>(options), options.encoder_layers())));
  decoder = register_module(
      "decoder", nn::TransformerDecoder(nn::TransformerDecoderOptions(
                     layer_options<nn::TransformerDecoderLayerOptions>(options), options.decoder_layers())));
  output = make_output(options, options.target_vocabulary());
  if (output) register_module("output", output);
}

void Seq2SeqImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::models::Seq2Seq(vocabularies=" << options.source_vocabulary() << ", "
         << options.target_vocabulary() << ", width=" << options.width()
         << ", layers=" << options.encoder_layers() << " + " << options.decoder_layers()
         << ", algebra=" << options.algebra().text() << ")";
}

at::Tensor Seq2SeqImpl::encode(const at::Tensor& tokens, const at::Tensor& source_padding) {
  const nn::Words words(source_padding);
  return words.places(encode_words(tokens, words));
}

at::Tensor Seq2SeqImpl::encode_words(const at::Tensor& tokens, const nn::Words& words) {
  return encoder->forward_words(words.rows(source_inputs()->forward(tokens)), words);
}

at::Tensor Seq2SeqImpl::hidden(const at::Tensor& tokens, const at::Tensor& memory,
                               const at::Tensor& target_padding, const at::Tensor& source_padding) {
  return decoder->forward(target->forward(tokens), memory, target_padding, source_padding);
}

at::Tensor Seq2SeqImpl::decode(const at::Tensor& tokens, const at::Tensor& memory,
                               const at::Tensor& target_padding, const at::Tensor& source_padding) {
  return scores(hidden(tokens, memory, target_padding, source_padding));
}

at::Tensor Seq2SeqImpl::cross_weights(const at::Tensor& tokens, const at::Tensor& memory, int64_t layer,
                                      const at::Tensor& target_padding, const at::Tensor& source_padding) {
  const int64_t layers = options.decoder_layers(), number = layer < 0 ? layers + layer : layer;
  nn::require(number >= 0 && number < layers, "Seq2Seq: layer must be from ", -layers, " to ", layers - 1,
              ", got ", layer);
  const auto layer_of = [&](int64_t i) {
    return decoder->layers[static_cast<size_t>(i)]->as<nn::TransformerDecoderLayerImpl>();
  };
  at::Tensor x = target->forward(tokens);
  for (int64_t i = 0; i < number; ++i) x = layer_of(i)->forward(x, memory, target_padding, source_padding);
  const auto [y, weights] = layer_of(number)->forward_with_weights(x, memory, target_padding, source_padding);
  return weights.mean({1, 2});
}

at::Tensor Seq2SeqImpl::scores(const at::Tensor& hidden) {
  const at::Tensor all = output ? output->forward(hidden) : target->embedding->scores(hidden);
  return of_tokens(all, options, options.target_vocabulary());
}

at::Tensor Seq2SeqImpl::forward(const at::Tensor& source_tokens, const at::Tensor& target_tokens,
                                const at::Tensor& source_padding, const at::Tensor& target_padding) {
  return decode(target_tokens, encode(source_tokens, source_padding), target_padding, source_padding);
}

}  // namespace quatrain::models
