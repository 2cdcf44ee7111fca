#include "quatrain/nn/parameters.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/types.h>

#include "nn/visit.h"
#include "quatrain/nn/decoder.h"
#include "quatrain/nn/embedding.h"
#include "quatrain/nn/encoder.h"

namespace quatrain::nn {

ParameterReport parameter_report(const torch::nn::Module& module) {
  ParameterReport report;
  report.total = parameter_count(module);
  for (const at::Tensor& parameter : module.parameters())
    if (parameter.requires_grad()) report.trainable += parameter.numel();
  const auto visit = [&report](const torch::nn::Module& part) {
    if (dynamic_cast<const torch::nn::EmbeddingImpl*>(&part) || dynamic_cast<const EmbeddingImpl*>(&part))
      report.embeddings += parameter_count(part);
    if (dynamic_cast<const TransformerEncoderImpl*>(&part) ||
        dynamic_cast<const TransformerDecoderImpl*>(&part))
      report.encoder += parameter_count(part);
  };
  visit(module);  // not among modules() below: that needs a shared pointer to it
  for (const auto& part : module.modules(/*include_self=*/false)) visit(*part);
  visit_layers(module, "", [&report](const std::string&, const HypercomplexLayer& layer) {
    for (const HypercomplexWeight* weight : layer.weights())
      for (const auto& part : weight->parts()) report.weights += part.value.numel();
  });
  return report;
}

std::vector<at::Tensor> decaying_parameters(const torch::nn::Module& module) {
  std::vector<at::Tensor> result;
  visit_layers(module, "", [&result](const std::string&, const HypercomplexLayer& layer) {
    for (const HypercomplexWeight* weight : layer.weights())
      for (const auto& part : weight->parts())
        if (part.decays) result.push_back(part.value);
  });
  return result;
}

}  // namespace quatrain::nn
