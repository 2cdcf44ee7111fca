#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/nn/safetensors.h"
#include "quatrain/train/options.h"

namespace quatrain::train {

using NamedParameters = std::vector<std::pair<std::string, at::Tensor>>;

/// The parameters of a module that are trained, each once (a shared one under its first name).
QUATRAIN_API NamedParameters trained_parameters(torch::nn::Module& module);

/// The optimizer over a module's trained parameters in two groups, with and without weight decay.
QUATRAIN_API std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerOptions& options,
                                                                     torch::nn::Module& module);

QUATRAIN_API void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);

/// The state of an optimizer as tensors "NAME/exp_avg" and so on, which are not copied.
QUATRAIN_API nn::NamedTensors optimizer_state(const torch::optim::Optimizer& optimizer,
                                              const NamedParameters& parameters);

/// The inverse; a missing tensor or one of a wrong shape is an error, and then nothing is changed.
QUATRAIN_API void load_optimizer_state(torch::optim::Optimizer& optimizer, const NamedParameters& parameters,
                                       const nn::NamedTensors& state);

}  // namespace quatrain::train
