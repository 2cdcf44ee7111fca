#include "quatrain/models/word_vectors.h"

#include <torch/nn/cloneable.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "nn/check.h"

namespace quatrain::models {

WordVectorsImpl::WordVectorsImpl(WordVectorsOptions options) : options(std::move(options)) {
  const WordVectorsOptions& o = this->options;
  nn::require(o.width() >= 1, "WordVectors: width must be at least 1, got ", o.width());
  nn::require(o.padding_id() >= 0 && o.padding_id() < o.vocabulary_size(),
              "WordVectors: padding_id must be a token of the vocabulary of ", o.vocabulary_size(), ", got ",
              o.padding_id());
  WordVectorsImpl::reset();
}

void WordVectorsImpl::reset() {
  embedding = register_module(
      "embedding",
      torch::nn::Embedding(torch::nn::EmbeddingOptions(options.vocabulary_size(), options.width())
                               .padding_idx(options.padding_id())));
  embedding->weight.set_requires_grad(options.trained());
  if (options.projected() > 0)
    projection =
        register_module("projection", nn::Linear(nn::LinearOptions(options.width(), options.projected())
                                                     .algebra("real")
                                                     .initialiser(options.initialiser())));
}

void WordVectorsImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::models::WordVectors(" << options.vocabulary_size() << ", " << options.width()
         << (options.trained() ? ", trained" : ", fixed") << ")";
}

std::shared_ptr<torch::nn::Module> WordVectorsImpl::clone(const std::optional<torch::Device>& device) const {
  auto copy = torch::nn::Cloneable<WordVectorsImpl>::clone(device);
  // Torch's clone of a child forgets what is fixed.
  static_cast<WordVectorsImpl&>(*copy).embedding->weight.set_requires_grad(embedding->weight.requires_grad());
  return copy;
}

at::Tensor WordVectorsImpl::forward(const at::Tensor& tokens) {
  const at::Tensor vectors = embedding->forward(tokens);
  return projection ? at::tanh(projection->forward(vectors)) : vectors;
}

void WordVectorsImpl::set(const at::Tensor& vectors) {
  const at::NoGradGuard no_grad;
  TORCH_CHECK_VALUE(vectors.sizes() == embedding->weight.sizes(), "WordVectors: the vectors must be ",
                    embedding->weight.sizes(), ", got ", vectors.sizes());
  embedding->weight.copy_(vectors);
  embedding->weight[options.padding_id()].zero_();
}

}  // namespace quatrain::models
