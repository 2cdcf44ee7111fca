#pragma once

#include <torch/arg.h>
#include <torch/nn/pimpl.h>

#include <vector>

#include "quatrain/nn/layer.h"
#include "quatrain/nn/options.h"

namespace quatrain::nn {

/// Of the options that maps share: `algebra`, `way` of scores(), and `initialiser`, which is lecun by
/// default: rows whose mean square norm is 1. There is no bias.
struct QUATRAIN_API EmbeddingOptions : MapOptions<EmbeddingOptions> {
  EmbeddingOptions(int64_t num_embeddings, int64_t embedding_dim)
      : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim) {
    initialiser(Initialiser::lecun);
  }
  /// Number of rows; n must divide it.
  TORCH_ARG(int64_t, num_embeddings);
  /// Size of a row; n must divide it.
  TORCH_ARG(int64_t, embedding_dim);
};

/// A vector for each token: the rows of H = sum_i A_i (x) S_i (PHYDI's PHM embedding), torch's embedding at
/// n = 1. A row is mixed of n rows of S; H is never written out. Parameters: those of HypercomplexWeight, S
/// (n, num_embeddings/n, embedding_dim/n).
///
/// Shape: (...) int64 or int32 -> (..., embedding_dim).
class QUATRAIN_API EmbeddingImpl : public HypercomplexModule<EmbeddingImpl>, public HypercomplexWeight {
 public:
  EmbeddingImpl(int64_t num_embeddings, int64_t embedding_dim)
      : EmbeddingImpl(EmbeddingOptions(num_embeddings, embedding_dim)) {}
  explicit EmbeddingImpl(EmbeddingOptions options);

  void reset() override;
  /// Draws S and A anew by the options' initialiser.
  void reset_parameters() { draw(); }
  void pretty_print(std::ostream& stream) const override;
  std::vector<HypercomplexWeight*> weights() override { return {this}; }

  /// Throws c10::IndexError for a token outside [0, num_embeddings).
  at::Tensor forward(const at::Tensor& tokens);
  /// H x: a score for each token. x (..., embedding_dim) -> (..., num_embeddings); an output layer whose
  /// weights are these.
  at::Tensor scores(const at::Tensor& x);

  EmbeddingOptions options;
};
TORCH_MODULE(Embedding);

}  // namespace quatrain::nn
