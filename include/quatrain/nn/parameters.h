#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string_view>

#include "quatrain/api.h"

namespace quatrain::nn {

/// Sizes of a model, in numbers.
struct QUATRAIN_API ParameterReport {
  int64_t total = 0;       ///< all parameters
  int64_t trainable = 0;   ///< those that require a gradient
  int64_t embeddings = 0;  ///< those of torch::nn::Embedding modules
  int64_t encoder =
      0;  ///< those of TransformerEncoder modules: the papers' counts without embeddings and head
};
QUATRAIN_API ParameterReport parameter_report(const torch::nn::Module& module);

/// Whether weight decay applies to a parameter of this (dotted) name: only to weights, `S` (and a
/// convolution's `F`); not to `A`, `w`, `alpha`, biases, norms and embeddings.
QUATRAIN_API bool takes_weight_decay(std::string_view parameter);

}  // namespace quatrain::nn
