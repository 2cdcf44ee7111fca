#include "quatrain/nn/parameters.h"

#include <torch/torch.h>

#include "quatrain/nn/encoder.h"

namespace quatrain::nn {

namespace {

int64_t count(const torch::nn::Module& module) {
  int64_t sum = 0;
  for (const at::Tensor& parameter : module.parameters()) sum += parameter.numel();
  return sum;
}

}  // namespace

ParameterReport parameter_report(const torch::nn::Module& module) {
  ParameterReport report;
  report.total = count(module);
  for (const at::Tensor& parameter : module.parameters())
    if (parameter.requires_grad()) report.trainable += parameter.numel();
  const auto visit = [&report](const torch::nn::Module& part) {
    if (dynamic_cast<const torch::nn::EmbeddingImpl*>(&part)) report.embeddings += count(part);
    if (dynamic_cast<const TransformerEncoderImpl*>(&part)) report.encoder += count(part);
  };
  visit(module);  // not among modules() below: that needs a shared pointer to it
  for (const auto& part : module.modules(/*include_self=*/false)) visit(*part);
  return report;
}

bool takes_weight_decay(std::string_view parameter) {
  const std::string_view last = parameter.substr(parameter.rfind('.') + 1);  // npos + 1 = 0
  return last == "S" || last == "F";
}

}  // namespace quatrain::nn
