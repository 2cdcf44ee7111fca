#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include <string>

#include "quatrain/nn/encoder.h"

namespace quatrain::models {

/// The encoder's options, and what is around it. dropout: of the embeddings and in the encoder.
struct QUATRAIN_API TextClassifierOptions : nn::TransformerOptions<TextClassifierOptions> {
  TextClassifierOptions(int64_t vocabulary_size, int64_t classes)
      : vocabulary_size_(vocabulary_size), classes_(classes) {
    width(128).heads(4).feed_forward(512).norm(nn::NormStyle::pre);
  }
  TORCH_ARG(int64_t, vocabulary_size);
  TORCH_ARG(int64_t, classes);
  TORCH_ARG(int64_t, layers) = 2;
  /// Embeddings start with variance 1/width and are multiplied by sqrt(width); without: variance 1, not
  /// multiplied.
  TORCH_ARG(bool, embedding_scale) = true;
  /// Positions whose sinusoids are kept; longer inputs work and compute theirs.
  TORCH_ARG(int64_t, max_length) = 512;
  /// The token that stands for no word: its embedding is zero and gets no gradient.
  TORCH_ARG(int64_t, padding_id) = 0;
  /// Width of pretrained embeddings, which pass a real linear map and tanh to reach `width` (QNLP 3.4); 0:
  /// none, the embeddings have the model's width. embedding_scale has no effect on pretrained ones.
  TORCH_ARG(int64_t, pretrained_width) = 0;
  /// The embeddings are not trained.
  TORCH_ARG(bool, freeze_pretrained) = false;
};

/// The tiny Transformer of QNLP and PHM for classifying texts (Tensor2Tensor's): real embeddings, sinusoidal
/// positions, an encoder over any algebra, the mean over unpadded positions, a real linear head.
///
/// Children: `embedding`, `projection` (pretrained only), `encoder`, `head`.
class QUATRAIN_API TextClassifierImpl : public torch::nn::Cloneable<TextClassifierImpl> {
 public:
  TextClassifierImpl(int64_t vocabulary_size, int64_t classes)
      : TextClassifierImpl(TextClassifierOptions(vocabulary_size, classes)) {}
  explicit TextClassifierImpl(TextClassifierOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = {}) const override;

  /// tokens (B, L) int64, padding (B, L) bool, true where there is no word (undefined: where the token is
  /// padding_id). Returns logits (B, classes). A text that is all padding has the mean zero, so its logits
  /// are the head's bias.
  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& padding = {});

  /// Copies pretrained vectors (vocabulary_size, pretrained_width or width) into the embeddings; the row of
  /// padding_id becomes zero.
  void set_embeddings(const at::Tensor& vectors);

  TextClassifierOptions options;
  torch::nn::Embedding embedding{nullptr};
  nn::Linear projection{nullptr};
  nn::TransformerEncoder encoder{nullptr};
  nn::Linear head{nullptr};

 private:
  at::Tensor positions_;  // (max_length, width), constant

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(at::Tensor())})
};
TORCH_MODULE(TextClassifier);

}  // namespace quatrain::models
