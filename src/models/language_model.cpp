#include "quatrain/models/language_model.h"

#include <torch/types.h>

#include "models/sequence_parts.h"
#include "nn/check.h"
#include "support/enum_names.h"

namespace quatrain::models {

namespace {

constexpr EnumNames<OutputLayer, 3> kOutputs{
    {{OutputLayer::tied, "tied"}, {OutputLayer::real, "real"}, {OutputLayer::algebra, "algebra"}}};

}  // namespace

const char* name(OutputLayer output) {
  return name_of(kOutputs, output);
}
OutputLayer parse_output_layer(std::string_view text) {
  return parse_name(kOutputs, "output", text);
}

LanguageModelImpl::LanguageModelImpl(LanguageModelOptions options) : options(std::move(options)) {
  nn::require(this->options.vocabulary_size() >= 1, "LanguageModel: vocabulary_size must be at least 1, got ",
              this->options.vocabulary_size());
  LanguageModelImpl::reset();
}

void LanguageModelImpl::reset() {
  inputs = register_module("inputs", make_inputs(options, options.vocabulary_size()));
  layers = register_module(
      "layers", nn::TransformerEncoder(nn::TransformerEncoderOptions(
                    layer_options<nn::TransformerEncoderLayerOptions>(options), options.layers())));
  output = make_output(options, options.vocabulary_size());
  if (output) register_module("output", output);
}

void LanguageModelImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::models::LanguageModel(vocabulary=" << options.vocabulary_size()
         << ", width=" << options.width() << ", layers=" << options.layers()
         << ", algebra=" << options.algebra().text() << ")";
}

at::Tensor LanguageModelImpl::forward(const at::Tensor& tokens, const at::Tensor& padding) {
  return scores(hidden(tokens, padding));
}

at::Tensor LanguageModelImpl::hidden(const at::Tensor& tokens, const at::Tensor& padding) {
  return layers->forward(inputs->forward(tokens), padding, /*causal=*/true);
}

at::Tensor LanguageModelImpl::scores(const at::Tensor& hidden) {
  const at::Tensor all = output ? output->forward(hidden) : inputs->embedding->scores(hidden);
  return of_tokens(all, options, options.vocabulary_size());
}

}  // namespace quatrain::models
