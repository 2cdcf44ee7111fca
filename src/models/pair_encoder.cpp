#include "quatrain/models/pair_encoder.h"

#include <torch/nn/utils/rnn.h>
#include <torch/types.h>

#include <limits>

#include "models/pair_inputs.h"
#include "nn/check.h"

namespace quatrain::models {

namespace rnn = torch::nn::utils::rnn;

PairEncoderImpl::PairEncoderImpl(PairEncoderOptions options) : options(std::move(options)) {
  nn::require(this->options.classes() >= 1, "PairEncoder: classes must be at least 1, got ",
              this->options.classes());
  PairEncoderImpl::reset();
}

void PairEncoderImpl::reset() {
  words =
      register_module("words", WordVectors(WordVectorsOptions(options.vocabulary_size(), options.input_size())
                                               .padding_id(options.padding_id())
                                               .trained(options.train_words())));
  nn::LSTMOptions lstm(options.input_size(), options.hidden_size());
  lstm.like(options);
  if (options.num_layers() == 1) lstm.dropout(0);  // there is nothing between layers
  lstm.recurrent_settings = options.recurrent_settings;
  lstm.sizes = options.sizes;
  lstm.sizes.direction_first = options.bidirectional();  // as a real twin has it, whose weights can be taken
  encoder = register_module("encoder", nn::LSTM(lstm));
  const int64_t features = 2 * options.hidden_size() * (options.bidirectional() ? 2 : 1);
  classifier = register_module(
      "classifier",
      Perceptron(PerceptronOptions((options.compared() ? 4 : 2) * features, options.classifier_width())
                     .layers(options.classifier_layers())
                     .dropout(options.classifier_dropout())
                     .algebra("real")
                     .initialiser(options.initialiser())));
  head = register_module("head", nn::Linear(nn::LinearOptions(options.classifier_width(), options.classes())
                                                .algebra("real")
                                                .initialiser(options.initialiser())));
}

void PairEncoderImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::models::PairEncoder(vocabulary=" << options.vocabulary_size()
         << ", classes=" << options.classes() << ", hidden=" << options.hidden_size()
         << ", algebra=" << options.algebra().text() << ")";
}

rnn::PackedSequence PairEncoderImpl::embed(const at::Tensor& first, const at::Tensor& second) {
  const auto [first_padding, second_padding] =
      padding_of_pairs("PairEncoder", first, second, options.padding_id());
  const int64_t length = std::max(first.size(1), second.size(1));
  const auto filled = [length](const at::Tensor& text, int64_t value) {
    return at::constant_pad_nd(text, {0, length - text.size(1)}, value);
  };
  const at::Tensor tokens =
      at::cat({filled(first, options.padding_id()), filled(second, options.padding_id())});
  const at::Tensor padding = at::cat({filled(first_padding, 1), filled(second_padding, 1)});
  TORCH_CHECK_VALUE(at::equal(padding, std::get<0>(padding.cummax(1))), "PairEncoder: padding (",
                    options.padding_id(), ") stands before a word; texts must be filled up at their ends");
  const at::Tensor lengths = padding.logical_not().sum(1).cpu();
  const rnn::PackedSequence packed =
      rnn::pack_padded_sequence(tokens, lengths, /*batch_first=*/true, /*enforce_sorted=*/false);
  return rnn::PackedSequence(words->forward(packed.data()), packed.batch_sizes(), packed.sorted_indices(),
                             packed.unsorted_indices());
}

at::Tensor PairEncoderImpl::classify(const rnn::PackedSequence& encoded) {
  const auto [y, lengths] = rnn::pad_packed_sequence(encoded, /*batch_first=*/true);
  const at::Tensor of_texts = lengths.to(y.device());
  const at::Tensor padding = at::arange(y.size(1), of_texts.options()).unsqueeze(0) >= of_texts.unsqueeze(1);
  const at::Tensor largest =
      std::get<0>(y.masked_fill(padding.unsqueeze(-1), -std::numeric_limits<double>::infinity()).max(1));
  const at::Tensor mean = y.sum(1) / of_texts.to(y.scalar_type()).unsqueeze(1);
  const std::vector<at::Tensor> features = at::cat({largest, mean}, 1).chunk(2, 0);
  const at::Tensor &u = features[0], v = features[1];
  const at::Tensor joined =
      options.compared() ? at::cat({u, v, (u - v).abs(), u * v}, 1) : at::cat({u, v}, 1);
  return head->forward(classifier->forward(joined));
}

at::Tensor PairEncoderImpl::forward(const at::Tensor& first, const at::Tensor& second) {
  return classify(std::get<0>(encoder->forward_with_packed_input(embed(first, second))));
}

}  // namespace quatrain::models
