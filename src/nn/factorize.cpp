#include "quatrain/nn/factorize.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include "nn/visit.h"
#include "support/numbers.h"
#include "support/text_table.h"

namespace quatrain::nn {

FactorizeReport factorize(torch::nn::Module& module, const ops::DecomposeOptions& options) {
  FactorizeReport report;
  visit_layers(module, "", [&](const std::string& name, HypercomplexLayer& layer) {
    for (HypercomplexWeight* weight : layer.weights()) {
      if (!weight->A.defined()) continue;
      const ops::Decomposition found = weight->find_factors(options);
      report.layers.push_back({weight_name(name, layer, *weight), weight->A.size(0), found.rank,
                               found.residual, found.condition, found.sound});
      report.learned += 1;
      report.sound += found.sound;
    }
  });
  return report;
}

std::string FactorizeReport::table() const {
  Table text;
  text.row({"layer", "n", "rank", "error", "condition", "factors"});
  for (const LayerFactors& layer : layers)
    text.row({layer_name(layer.name), grouped(layer.n), grouped(layer.rank), short_number(layer.error),
              short_number(layer.condition), layer.sound ? "held" : "none that are sound"});
  return text.text();
}

}  // namespace quatrain::nn
