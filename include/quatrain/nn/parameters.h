#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::nn {

/// Sizes of a model, in numbers.
struct QUATRAIN_API ParameterReport {
  int64_t total = 0;       ///< all parameters
  int64_t trainable = 0;   ///< those that require a gradient
  int64_t embeddings = 0;  ///< those of embeddings, torch's and ours
  /// Those of TransformerEncoder and TransformerDecoder modules: the papers' counts without embeddings and
  /// head.
  int64_t encoder = 0;
  int64_t weights = 0;  ///< those of hypercomplex layers' weights, n = 1 too: without biases and norms
};
QUATRAIN_API ParameterReport parameter_report(const torch::nn::Module& module);

/// The parameters to which weight decay applies: those that the weights of hypercomplex layers name
/// (HypercomplexWeight::parts), S; not `A`, `factors`, `w`, `alpha`, biases, norms and embeddings. By role: a
/// parameter of another kind of module does not decay, whatever its name. Python's parameter_groups makes an
/// optimizer's groups of them.
QUATRAIN_API std::vector<at::Tensor> decaying_parameters(const torch::nn::Module& module);

}  // namespace quatrain::nn
