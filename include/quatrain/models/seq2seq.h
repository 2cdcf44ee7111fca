#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>

#include "quatrain/models/sequence_options.h"
#include "quatrain/nn/decoder.h"

namespace quatrain::models {

struct QUATRAIN_API Seq2SeqOptions : SequenceOptions<Seq2SeqOptions> {
  Seq2SeqOptions(int64_t source_vocabulary, int64_t target_vocabulary)
      : source_vocabulary_(source_vocabulary), target_vocabulary_(target_vocabulary) {
    width(512).heads(8);
  }
  /// How many tokens there are.
  TORCH_ARG(int64_t, source_vocabulary);
  TORCH_ARG(int64_t, target_vocabulary);
  TORCH_ARG(int64_t, encoder_layers) = 6;
  TORCH_ARG(int64_t, decoder_layers) = 6;
  /// One embedding for source and target, whose vocabularies are then one.
  TORCH_ARG(bool, share_embeddings) = false;
};

/// The encoder-decoder Transformer of QNLP and PHM over any algebra: it scores each next token of a target,
/// given a source.
///
/// Children: `source` (unless embeddings are shared), `target` (TokenInputs), `encoder`, `decoder`, `output`
/// (unless it is tied to the target's embedding).
class QUATRAIN_API Seq2SeqImpl : public torch::nn::Cloneable<Seq2SeqImpl> {
 public:
  explicit Seq2SeqImpl(Seq2SeqOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// source (B, S) and target (B, L) int64, their paddings bool or undefined. The target begins with the mark
  /// of its start. Returns the scores (logits) of the token that follows each of its places, (B, L,
  /// target_vocabulary).
  at::Tensor forward(const at::Tensor& source, const at::Tensor& target,
                     const at::Tensor& source_padding = {}, const at::Tensor& target_padding = {});

  /// The parts of forward(): the encoder's output (B, S, width), and the scores given it.
  at::Tensor encode(const at::Tensor& source, const at::Tensor& source_padding = {});
  /// The same as rows, without padding between the words: (1, words, width).
  at::Tensor encode_words(const at::Tensor& source, const nn::Words& words);
  /// What sources go through first: `source`, or `target` where the two share their embeddings.
  TokenInputs& source_inputs() { return source ? source : target; }
  at::Tensor decode(const at::Tensor& target, const at::Tensor& memory, const at::Tensor& target_padding = {},
                    const at::Tensor& source_padding = {});
  /// decode() without the scores: hidden states (B, L, width).
  at::Tensor hidden(const at::Tensor& target, const at::Tensor& memory, const at::Tensor& target_padding = {},
                    const at::Tensor& source_padding = {});
  /// How much each place of the target sees of each of the source's in a decoder layer (from 0, or from the
  /// end, -1 the last), (B, L, S): the mean over the heads' weights, and over components where attention is
  /// component-wise.
  at::Tensor cross_weights(const at::Tensor& target, const at::Tensor& memory, int64_t layer = -1,
                           const at::Tensor& target_padding = {}, const at::Tensor& source_padding = {});
  /// Scores of hidden states (..., width) -> (..., target_vocabulary).
  at::Tensor scores(const at::Tensor& hidden);

  Seq2SeqOptions options;
  TokenInputs source{nullptr}, target{nullptr};
  nn::TransformerEncoder encoder{nullptr};
  nn::TransformerDecoder decoder{nullptr};
  nn::Linear output{nullptr};

 protected:
  FORWARD_HAS_DEFAULT_ARGS({2, torch::nn::AnyValue(at::Tensor())}, {3, torch::nn::AnyValue(at::Tensor())})
};
TORCH_MODULE(Seq2Seq);

}  // namespace quatrain::models
