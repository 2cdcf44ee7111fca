#include "quatrain/models/seq2seq_decoder.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "models/sequence_parts.h"
#include "models/source_encoder.h"
#include "models/step_guards.h"
#include "models/table_rows.h"
#include "nn/layer_steps.h"

namespace quatrain::models {

class Seq2SeqDecoder::Plans {
 public:
  explicit Plans(const Seq2Seq& of)
      : model(of),
        encoder(model),
        layers(model->decoder->layers, model->decoder->norm),
        bytes(weight_bytes(*model->decoder) + output_bytes(*model->target, model->output)) {}

  Seq2Seq model;
  SourceEncoder encoder;
  nn::LayerSteps layers;
  int64_t bytes;  // of the weights that a step reads
};

Seq2SeqDecoder::Seq2SeqDecoder(Seq2Seq model, const at::Tensor& source, const at::Tensor& source_padding,
                               int64_t rows, int64_t capacity, std::shared_ptr<Plans> plans)
    : model_(std::move(model)),
      rows_(rows),
      capacity_(capacity),
      plans_(plans ? std::move(plans) : std::make_shared<Plans>(model_)),
      table_(std::max<int64_t>(rows, 0), std::max<int64_t>(capacity, 0), source.device()),
      memory_(std::make_shared<ops::StepMemory>()) {
  TORCH_CHECK(!model_->is_training(), "Seq2SeqDecoder: the model must be in eval mode; call eval()");
  TORCH_CHECK(plans_->model.get() == model_.get(), "Seq2SeqDecoder: the plans are of another model");
  TORCH_CHECK(source.dim() == 2 && (!source_padding.defined() || source_padding.sizes() == source.sizes()),
              "Seq2SeqDecoder: source must be (sentences, S) and padding the same, got ", source.sizes(),
              " and ", source_padding.defined() ? source_padding.sizes() : at::IntArrayRef());
  TORCH_CHECK(rows >= 1 && capacity >= 1, "Seq2SeqDecoder: rows and capacity must be at least 1, got ", rows,
              " and ", capacity);
  const torch::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;  // as StepGuards
  const int64_t sentences = source.size(0), length = source.size(1);
  const auto ints = torch::TensorOptions(torch::kInt).device(source.device());
  source_places_ = torch::arange(sentences, ints).unsqueeze(1).expand({sentences, length}).contiguous();
  source_lengths_ = source_padding.defined() ? source_padding.logical_not().sum(1, false, torch::kInt)
                                             : torch::full({sentences}, length, ints);
  if (source_padding.defined())
    TORCH_CHECK(source_padding.equal(torch::arange(length, ints) >= source_lengths_.unsqueeze(1)),
                "Seq2SeqDecoder: padding must follow the words of a source");
  TORCH_CHECK(source_lengths_.gt(0).all().item<bool>(), "Seq2SeqDecoder: a source must have a word");
  const nn::Words words(source_padding);
  const at::Tensor memory = plans_->encoder(source, words, source_lengths_);
  for (const auto& layer : *model_->decoder->layers) {
    auto& attention = *layer->as<nn::TransformerDecoderLayerImpl>();
    self_.push_back(attention.attention->make_cache(rows, capacity));
    const auto [keys, values] = attention.cross_attention->project_key_value(memory, memory);
    const at::ScalarType type = self_.back().keys.scalar_type();
    cross_.push_back({words.places(keys).to(type), words.places(values).to(type), {}, {}});
  }
}

int64_t Seq2SeqDecoder::bytes_read() const {
  return plans_->bytes;
}

at::Tensor Seq2SeqDecoder::step(const at::Tensor& tokens, const at::Tensor& parents) {
  const StepGuards guards(*memory_, plans_->bytes);
  return model_->scores(hidden(tokens, parents));
}

at::Tensor Seq2SeqDecoder::hidden(const at::Tensor& tokens, const at::Tensor& parents) {
  const StepGuards guards(*memory_, plans_->bytes);
  const int64_t rows = tokens.size(0), place = length();
  TORCH_CHECK(rows <= rows_ && parents.size(0) == rows, "Seq2SeqDecoder: at most ", rows_,
              " hypotheses and a parent for each, got ", rows, " tokens and ", parents.size(0), " parents");
  TORCH_CHECK(place < capacity_, "Seq2SeqDecoder: there is room for ", capacity_, " words of a target");
  const at::Tensor sentences = place == 0 ? parents.clone() : table_rows(sentences_, parents),
                   places = table_rows(source_places_, sentences),
                   source_lengths = table_rows(source_lengths_, sentences);
  const at::Tensor x = model_->target->forward(tokens.unsqueeze(1), place).squeeze(1);
  table_.grow(parents);  // after what a wrong token or sentence would end
  sentences_ = sentences;
  const at::Tensor seen = table_.seen(), lengths = table_.lengths();
  for (size_t i = 0; i < self_.size(); ++i) {
    self_[i].table = seen, self_[i].lengths = lengths;
    cross_[i].table = places, cross_[i].lengths = source_lengths;
  }
  return plans_->layers(x, place, self_, cross_);
}

}  // namespace quatrain::models
