#include "quatrain/nn/conversion_report.h"

#include <algorithm>

#include "support/numbers.h"
#include "support/text_table.h"

namespace quatrain::nn {

int64_t ConversionReport::converted() const {
  return std::count_if(layers.begin(), layers.end(), [](const auto& layer) { return layer.skipped.empty(); });
}

std::string ConversionReport::table() const {
  Table text("lrrrrrl");
  text.row({"layer", "in", "out", "parameters", "after", "error"});
  for (const LayerConversion& layer : layers) {
    std::vector<std::string> row{layer_name(layer.name),
                                 grouped(layer.in_features),
                                 grouped(layer.out_features),
                                 grouped(layer.before),
                                 layer.skipped.empty() ? grouped(layer.after) : "-",
                                 layer.error ? short_number(*layer.error) : "-"};
    if (!layer.skipped.empty()) row.push_back(layer.skipped);
    text.row(std::move(row));
  }
  text.row({"whole model", "", "", grouped(before), grouped(after)});
  return text.text();
}

}  // namespace quatrain::nn
