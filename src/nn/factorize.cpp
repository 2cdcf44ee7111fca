#include "quatrain/nn/factorize.h"

#include <torch/torch.h>

#include "nn/fill_nearest.h"
#include "quatrain/nn/linear.h"
#include "support/text_table.h"

namespace quatrain::nn {
namespace {

LayerFactors factorize_layer(LinearImpl& layer, const std::string& name,
                             const ops::DecomposeOptions& options) {
  const ops::Decomposition found = layer.find_factors(options);
  return {name, layer.A.size(0), found.rank, found.residual, found.condition, found.sound};
}

void visit(torch::nn::Module& module, const std::string& name, const ops::DecomposeOptions& options,
           FactorizeReport& report) {
  if (auto* layer = dynamic_cast<LinearImpl*>(&module); layer && layer->A.defined()) {
    report.layers.push_back(factorize_layer(*layer, name, options));
    report.learned += 1;
    report.sound += report.layers.back().sound;
  }
  for (const auto& child : module.named_children())
    visit(*child.value(), joined(name, child.key()), options, report);
}

}  // namespace

FactorizeReport factorize(torch::nn::Module& module, const ops::DecomposeOptions& options) {
  FactorizeReport report;
  visit(module, "", options, report);
  return report;
}

std::string FactorizeReport::table() const {
  TextTable text("lr");
  text.row({"layer", "n", "rank", "error", "condition", "factors"});
  for (const LayerFactors& layer : layers)
    text.row({layer_name(layer.name), grouped(layer.n), grouped(layer.rank), short_number(layer.error),
              short_number(layer.condition), layer.sound ? "held" : "none that are sound"});
  return text.text();
}

}  // namespace quatrain::nn
