#include "quatrain/nn/embedding.h"

#include <torch/types.h>

#include "nn/check.h"

namespace quatrain::nn {

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions options) : options(std::move(options)) {
  const int64_t n = this->options.algebra().n;
  require_divisible("Embedding", "num_embeddings", this->options.num_embeddings(), n, "n");
  require_divisible("Embedding", "embedding_dim", this->options.embedding_dim(), n, "n");
  EmbeddingImpl::reset();
}

void EmbeddingImpl::reset() {
  WeightOptions weight;
  weight.algebra = options.algebra();
  weight.in_features = options.embedding_dim();
  weight.out_features = options.num_embeddings();
  weight.decays = false;
  weight.initialiser = options.initialiser();
  make(*this, std::move(weight));
}

void EmbeddingImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::Embedding(" << options.num_embeddings() << " x " << options.embedding_dim()
         << ", algebra=" << options.algebra().text() << ")";
}

at::Tensor EmbeddingImpl::forward(const at::Tensor& tokens) {
  return ops::embedding(tokens, S, product());  // of whose rows only a few are multiplied
}

at::Tensor EmbeddingImpl::scores(const at::Tensor& x) {
  const Operands weight = operands(is_training());
  return ops::linear(x, weight.S, {}, weight.product, options.way(), std::nullopt, weight.constant);
}

}  // namespace quatrain::nn
