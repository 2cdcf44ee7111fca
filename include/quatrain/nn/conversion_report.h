#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::nn {

/// What became of one layer, or of one weight of a recurrent layer.
struct QUATRAIN_API LayerConversion {
  std::string name;  ///< dotted, as in named_modules, with the weight's behind it; empty: the module itself
  int64_t in_features = 0, out_features = 0;
  int64_t before = 0;  ///< parameters, bias included
  int64_t after = 0;   ///< the same number where it was skipped
  std::optional<double>
      error;            ///< |H - H'| / |H| of the real matrix and the new one; none with fresh weights
  std::string skipped;  ///< why it was not converted; empty: it was converted
};

/// What a conversion did.
struct QUATRAIN_API ConversionReport {
  std::string algebra;
  std::vector<LayerConversion> layers;  ///< every one that was met, in the model's order
  int64_t before = 0;                   ///< parameters of the whole model
  int64_t after = 0;

  /// How many of them were converted.
  int64_t converted() const;
  /// One line for each layer and one with the sums, in aligned columns.
  std::string table() const;
};

}  // namespace quatrain::nn
