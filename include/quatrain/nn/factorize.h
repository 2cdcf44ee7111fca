#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/ops.h"

namespace quatrain::nn {

/// What became of a weight whose A is learned.
struct QUATRAIN_API LayerFactors {
  std::string name;  ///< the layer's, dotted as in named_modules; then the weight's, where it has several
  int64_t n = 0;     ///< A is (n, n, n)
  int64_t rank = 0;  ///< of the best try, sound or not; the factored way costs rank / n^2 of the real layer
  double error = 0;  ///< relative error of the best try
  double condition = 0;  ///< of dA/d(U, V, W); infinite where its rank is below n^3, or no try is sound
  bool sound = false;    ///< kept and used in eval mode; if not, the layer computes in another way
};

/// What factorize found.
struct QUATRAIN_API FactorizeReport {
  int64_t learned = 0;  ///< weights with a learned A
  int64_t sound = 0;    ///< of these, those whose factors are sound
  std::vector<LayerFactors> layers;

  /// One line for each layer, in aligned columns.
  std::string table() const;
};

/// Computes the factors of every learned A in a model (HypercomplexWeight::factorize), for fast inference.
QUATRAIN_API FactorizeReport factorize(torch::nn::Module& module, const ops::DecomposeOptions& options = {});

}  // namespace quatrain::nn
