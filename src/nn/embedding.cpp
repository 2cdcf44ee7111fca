#include "quatrain/nn/embedding.h"

#include <torch/types.h>

#include "nn/check.h"

namespace quatrain::nn {

EmbeddingImpl::EmbeddingImpl(EmbeddingOptions options) : options(std::move(options)) {
  const int64_t n = this->options.algebra().n;
  require_divisible("Embedding", "tokens", this->options.tokens(), n, "n");
  require_divisible("Embedding", "width", this->options.width(), n, "n");
  EmbeddingImpl::reset();
}

void EmbeddingImpl::reset() {
  WeightOptions weight;
  weight.algebra = options.algebra();
  weight.in = options.width();
  weight.out = options.tokens();
  weight.decays = false;
  weight.initialiser = options.initialiser();
  make(*this, std::move(weight));
}

void EmbeddingImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::nn::Embedding(" << options.tokens() << " x " << options.width()
         << ", algebra=" << options.algebra().text() << ")";
}

at::Tensor EmbeddingImpl::forward(const at::Tensor& tokens) {
  const Operands weight = operands(is_training());
  return ops::embedding(tokens, weight.S, weight.product);
}

at::Tensor EmbeddingImpl::scores(const at::Tensor& x) {
  const Operands weight = operands(is_training());
  return ops::linear(x, weight.S, {}, weight.product, options.way(), std::nullopt, weight.constant);
}

}  // namespace quatrain::nn
