#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include "quatrain/models/perceptron.h"
#include "quatrain/models/word_vectors.h"
#include "quatrain/nn/recurrent.h"

namespace quatrain::models {

/// The options of the encoder, which has one bias a gate by default, and what is around it. dropout: between
/// the encoder's layers.
struct QUATRAIN_API PairEncoderOptions : nn::RecurrentLayerOptions<PairEncoderOptions> {
  /// Vectors of words have `word_width` values and each direction of the encoder `hidden`; n must divide
  /// both.
  PairEncoderOptions(int64_t vocabulary_size, int64_t classes, int64_t word_width = 300, int64_t hidden = 300)
      : RecurrentLayerOptions(word_width, hidden), vocabulary_size_(vocabulary_size), classes_(classes) {
    single_bias(true);
  }
  TORCH_ARG(int64_t, vocabulary_size);
  TORCH_ARG(int64_t, classes);
  /// The vectors of words are trained; else they stay what set_words() made them.
  TORCH_ARG(bool, train_words) = false;
  /// The classifier sees [u; v; |u - v|; u . v] of the texts' features u and v; else [u; v].
  TORCH_ARG(bool, compared) = true;
  /// Of the real classifier's layers, before the one that gives logits.
  TORCH_ARG(int64_t, classifier_width) = 300;
  TORCH_ARG(int64_t, classifier_layers) = 2;
  /// After each activation of the classifier.
  TORCH_ARG(double, classifier_dropout) = 0;
  /// The token that stands for no word.
  TORCH_ARG(int64_t, padding_id) = 0;
};

/// PHM's model of language inference (5.1, B.1): one LSTM over any algebra encodes either text, whose
/// features are the maximum and the mean of its outputs over all words; a real classifier sees the features
/// of both.
///
/// Children: `words`, `encoder`, and real ones, `classifier` and `head`.
class QUATRAIN_API PairEncoderImpl : public torch::nn::Cloneable<PairEncoderImpl> {
 public:
  PairEncoderImpl(int64_t vocabulary_size, int64_t classes)
      : PairEncoderImpl(PairEncoderOptions(vocabulary_size, classes)) {}
  explicit PairEncoderImpl(PairEncoderOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// first (B, la) and second (B, lb) int64, filled up with padding_id at their ends -> logits (B, classes).
  /// An error where a text has no word, or padding before a word.
  at::Tensor forward(const at::Tensor& first, const at::Tensor& second);

  /// The parts of forward(), for other encoders: vectors of the words of all texts, the first ones before the
  /// second ones, and the logits of what an encoder makes of them.
  torch::nn::utils::rnn::PackedSequence embed(const at::Tensor& first, const at::Tensor& second);
  at::Tensor classify(const torch::nn::utils::rnn::PackedSequence& encoded);

  /// Copies vectors of words (vocabulary_size, word_width); that of padding_id becomes zero.
  void set_words(const at::Tensor& vectors) { words->set(vectors); }

  PairEncoderOptions options;
  WordVectors words{nullptr};
  nn::LSTM encoder{nullptr};
  Perceptron classifier{nullptr};
  nn::Linear head{nullptr};
};
TORCH_MODULE(PairEncoder);

}  // namespace quatrain::models
