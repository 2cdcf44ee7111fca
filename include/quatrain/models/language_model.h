#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/pimpl.h>

#include "quatrain/models/sequence_options.h"

namespace quatrain::models {

struct QUATRAIN_API LanguageModelOptions : SequenceOptions<LanguageModelOptions> {
  explicit LanguageModelOptions(int64_t vocabulary_size) : vocabulary_size_(vocabulary_size) {
    width(128).heads(8).feed_forward(256);
  }

  /// How many tokens there are.
  TORCH_ARG(int64_t, vocabulary_size);
  TORCH_ARG(int64_t, layers) = 12;
};

/// A causal Transformer that scores the next token (PHYDI 4.3): embeddings and positions, layers that see
/// what came before, an output layer.
///
/// Children: `inputs`, `layers` (a TransformerEncoder), `output` (unless it is tied).
class QUATRAIN_API LanguageModelImpl : public torch::nn::Cloneable<LanguageModelImpl> {
 public:
  explicit LanguageModelImpl(LanguageModelOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;

  /// tokens (B, L) int64, padding (B, L) bool or undefined. Returns the scores (logits) of the token that
  /// follows each place, (B, L, vocabulary_size).
  at::Tensor forward(const at::Tensor& tokens, const at::Tensor& padding = {});

  /// What the scores are made of, (B, L, width).
  at::Tensor hidden(const at::Tensor& tokens, const at::Tensor& padding = {});
  /// Scores of the tokens that follow, (.., width) -> (.., vocabulary_size).
  at::Tensor scores(const at::Tensor& hidden);

  LanguageModelOptions options;
  TokenInputs inputs{nullptr};
  nn::TransformerEncoder layers{nullptr};
  nn::Linear output{nullptr};

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(at::Tensor())})
};
TORCH_MODULE(LanguageModel);

}  // namespace quatrain::models
