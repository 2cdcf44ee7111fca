#pragma once

#include "quatrain/models/sequence_options.h"

/// What models of sequences are built of.
namespace quatrain::models {

template <class Options>
TokenInputs make_inputs(const Options& options, int64_t tokens) {
  auto inputs = TokenInputsOptions(options.embedded(tokens), options.width()).like(options);
  inputs.initialiser(nn::Initialiser::lecun);
  if (!options.embedding_in_algebra()) inputs.algebra("real");
  return TokenInputs(inputs.scale(options.embedding_scale())
                         .positions(options.positions())
                         .max_length(options.max_length()));
}

/// Null where the output is tied.
template <class Options>
nn::Linear make_output(const Options& options, int64_t tokens) {
  if (options.output() == OutputLayer::tied) return nullptr;
  auto map = nn::LinearOptions(options.width(), options.scored(tokens)).like(options);
  if (options.output() == OutputLayer::real) map.algebra("real");
  return nn::Linear(map);
}

/// Scores (.., outputs) of the tokens alone, without those that fill an algebra.
template <class Options>
at::Tensor of_tokens(const at::Tensor& scores, const Options& options, int64_t tokens) {
  return options.scored(tokens) == tokens ? scores : scores.narrow(-1, 0, tokens);
}

/// What a step through a module reads of weights (ops::Traffic).
inline int64_t weight_bytes(const torch::nn::Module& module) {
  int64_t bytes = 0;
  for (const at::Tensor& weight : module.parameters()) bytes += static_cast<int64_t>(weight.nbytes());
  return bytes;
}

/// The same of the output layer, which is the embedding where it is tied.
inline int64_t output_bytes(const TokenInputsImpl& inputs, const nn::Linear& output) {
  return output ? weight_bytes(*output) : weight_bytes(*inputs.embedding);
}

/// Layers of an encoder or decoder.
template <class LayerOptions, class Options>
LayerOptions layer_options(const Options& options) {
  return LayerOptions(options.width(), options.heads()).like(options);
}

}  // namespace quatrain::models
