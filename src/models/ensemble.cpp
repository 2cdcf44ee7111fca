#include "quatrain/models/ensemble.h"

#include <torch/types.h>

#include "nn/check.h"

namespace quatrain::models {

Ensemble::Ensemble(Seq2Seq model) : models{std::move(model)} {}

Ensemble::Ensemble(std::vector<Seq2Seq> several) : models(std::move(several)) {
  nn::require(!models.empty(), "Ensemble: there must be a model, got none");
  const Seq2SeqOptions& first = models.front()->options;
  for (const Seq2Seq& model : models)
    nn::require(model->options.source_vocabulary() == first.source_vocabulary() &&
                    model->options.target_vocabulary() == first.target_vocabulary(),
                "Ensemble: all models must have the vocabularies of the first, ", first.source_vocabulary(),
                " and ", first.target_vocabulary(), " tokens, got ", model->options.source_vocabulary(),
                " and ", model->options.target_vocabulary());
}

at::Device Ensemble::device() const {
  return models.front()->target->embedding->parameters().front().device();
}

at::Tensor Ensemble::mean(std::vector<at::Tensor>& scores) {
  if (scores.size() == 1) return scores.front();
  at::Tensor highest;
  for (at::Tensor& one : scores) {
    one = at::log_softmax(one.scalar_type() == at::kDouble ? one : one.to(at::kFloat), -1);
    highest = highest.defined() ? at::maximum(highest, one) : one;
  }
  at::Tensor sum = at::zeros_like(highest);
  for (const at::Tensor& one : scores) sum += (one - highest).exp();
  return sum.div_(static_cast<double>(scores.size())).log_().add_(highest);
}

}  // namespace quatrain::models
