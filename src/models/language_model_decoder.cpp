#include "quatrain/models/language_model_decoder.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "models/sequence_parts.h"
#include "models/step_guards.h"
#include "nn/layer_steps.h"

namespace quatrain::models {

LanguageModelDecoder::LanguageModelDecoder(LanguageModel model, int64_t rows, int64_t capacity)
    : model_(std::move(model)),
      rows_(rows),
      capacity_(capacity),
      weight_bytes_(weight_bytes(*model_->layers) + output_bytes(*model_->inputs, model_->output)),
      table_(std::max<int64_t>(rows, 0), std::max<int64_t>(capacity, 0),
             model_->inputs->embedding->parameters().front().device()),
      memory_(std::make_shared<ops::StepMemory>()),
      layers_(std::make_shared<nn::LayerSteps>(model_->layers->layers, model_->layers->norm)) {
  TORCH_CHECK(!model_->is_training(), "LanguageModelDecoder: the model must be in eval mode; call eval()");
  TORCH_CHECK(rows >= 1 && capacity >= 1, "LanguageModelDecoder: rows and capacity must be at least 1, got ",
              rows, " and ", capacity);
  for (const auto& layer : *model_->layers->layers)
    caches_.push_back(layer->as<nn::TransformerEncoderLayerImpl>()->attention->make_cache(rows, capacity));
}

at::Tensor LanguageModelDecoder::step(const at::Tensor& tokens, const at::Tensor& parents) {
  const StepGuards guards(*memory_, weight_bytes_);
  const int64_t rows = tokens.size(0), place = length();
  TORCH_CHECK(rows <= rows_ && parents.size(0) == rows, "LanguageModelDecoder: at most ", rows_,
              " hypotheses and a parent for each, got ", rows, " tokens and ", parents.size(0), " parents");
  TORCH_CHECK(place < capacity_, "LanguageModelDecoder: there is room for ", capacity_, " words of a text");
  const at::Tensor x = model_->inputs->forward(tokens.unsqueeze(1), place).squeeze(1);
  table_.grow(parents);  // after what a wrong token would end
  const at::Tensor seen = table_.seen(), lengths = table_.lengths();
  for (size_t i = 0; i < caches_.size(); ++i) {
    caches_[i].table = seen, caches_[i].lengths = lengths;
  }
  return model_->scores((*layers_)(x, place, caches_));
}

}  // namespace quatrain::models
