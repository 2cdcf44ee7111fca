#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include <string_view>

#include "quatrain/nn/dropout.h"
#include "quatrain/nn/embedding.h"

namespace quatrain::models {

/// Where a word stands: fixed sinusoids (sinusoidal_positions), or vectors that are learned.
enum class Positions { sinusoidal, learned };
QUATRAIN_API const char* name(Positions positions);
QUATRAIN_API Positions parse_positions(std::string_view name);

/// What becomes of tokens before the first layer.
struct QUATRAIN_API TokenInputsOptions : nn::MapOptions<TokenInputsOptions>,
                                         nn::DropOptions<TokenInputsOptions> {
  TokenInputsOptions(int64_t tokens, int64_t width) : tokens_(tokens), width_(width) {
    algebra("real").initialiser(nn::Initialiser::lecun);
  }
  TORCH_ARG(int64_t, tokens);
  TORCH_ARG(int64_t, width);
  /// Rows, which start with the variance 1/width, are multiplied by sqrt(width).
  TORCH_ARG(bool, scale) = true;
  TORCH_ARG(Positions, positions) = Positions::sinusoidal;
  /// Learned: the longest text. Sinusoidal: places that are kept; longer texts work and compute theirs.
  TORCH_ARG(int64_t, max_length) = 512;
};

/// dropout(sqrt(width) embedding(tokens) + positions). Children: `embedding`, over the options' algebra, and
/// `positions` where they are learned. Shape: tokens (B, L) int64 -> (B, L, width); `first` is the place of
/// the first token, for texts that come in parts.
class QUATRAIN_API TokenInputsImpl : public torch::nn::Cloneable<TokenInputsImpl> {
 public:
  explicit TokenInputsImpl(TokenInputsOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  at::Tensor forward(const at::Tensor& tokens, int64_t first = 0);

  TokenInputsOptions options;
  nn::Embedding embedding{nullptr};
  torch::nn::Embedding positions{nullptr};

 private:
  at::Tensor places(int64_t first, int64_t length) const;

  at::Tensor sinusoids_;  // (max_length, width), constant

 protected:
  FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(int64_t{0})})
};
TORCH_MODULE(TokenInputs);

}  // namespace quatrain::models
