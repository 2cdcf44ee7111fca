#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/pimpl.h>

#include "quatrain/nn/linear.h"

namespace quatrain::models {

struct QUATRAIN_API WordVectorsOptions {
  WordVectorsOptions(int64_t vocabulary_size, int64_t width)
      : vocabulary_size_(vocabulary_size), width_(width) {}
  TORCH_ARG(int64_t, vocabulary_size);
  /// Of a word's vector.
  TORCH_ARG(int64_t, width);
  /// The token that stands for no word: its vector is zero and gets no gradient.
  TORCH_ARG(int64_t, padding_id) = 0;
  /// The vectors are trained; else they stay what set() made them.
  TORCH_ARG(bool, trained) = false;
  /// Width that a real linear map and tanh bring the vectors to (QNLP 3.4); 0: none.
  TORCH_ARG(int64_t, projected) = 0;
  TORCH_ARG(nn::Initialiser, initialiser) = nn::Initialiser::glorot;
};

/// Vectors of words that come from elsewhere, and what brings them into a model's space: tanh(projection(
/// embedding(tokens))), or the vectors themselves.
///
/// Children: `embedding`, whose vectors start normal with variance 1, and `projection` where there is one.
/// Shape: (...) int64 -> (..., projected or width).
class QUATRAIN_API WordVectorsImpl : public torch::nn::Cloneable<WordVectorsImpl> {
 public:
  explicit WordVectorsImpl(WordVectorsOptions options);
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  std::shared_ptr<torch::nn::Module> clone(const std::optional<torch::Device>& device = {}) const override;

  at::Tensor forward(const at::Tensor& tokens);
  /// Copies vectors (vocabulary_size, width); that of padding_id becomes zero.
  void set(const at::Tensor& vectors);

  WordVectorsOptions options;
  torch::nn::Embedding embedding{nullptr};
  nn::Linear projection{nullptr};
};
TORCH_MODULE(WordVectors);

}  // namespace quatrain::models
