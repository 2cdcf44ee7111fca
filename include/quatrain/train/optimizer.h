#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/nn/safetensors.h"

namespace quatrain::train {

/// "adam", "adamw", "sgd", "adagrad", "rmsprop".
enum class OptimizerKind { adam, adamw, sgd, adagrad, rmsprop };

QUATRAIN_API const char* name(OptimizerKind kind);
/// The inverse; an unknown name is an error that lists the known ones.
QUATRAIN_API OptimizerKind parse_optimizer(std::string_view name);

/// Options of an optimizer. Each is torch::optim's own.
struct QUATRAIN_API OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adam;
  double learning_rate = 1e-3;
  double weight_decay = 0;  ///< on weights alone: nn::decaying_parameters
  double beta1 = 0.9;       ///< adam, adamw
  double beta2 = 0.999;     ///< adam, adamw, rmsprop (there torch calls it alpha)
  double epsilon = 1e-8;    ///< all but sgd
  double momentum = 0;      ///< sgd, rmsprop
  bool nesterov = false;    ///< sgd
};

using NamedParameters = std::vector<std::pair<std::string, at::Tensor>>;

/// The parameters of a module that are trained, each once (a shared one under its first name).
QUATRAIN_API NamedParameters trained_parameters(torch::nn::Module& module);

/// The optimizer over a module's trained parameters in two groups, with and without weight decay.
QUATRAIN_API std::unique_ptr<torch::optim::Optimizer> make_optimizer(const OptimizerOptions& options,
                                                                     torch::nn::Module& module);

QUATRAIN_API void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);

/// What an optimizer remembers, as tensors "NAME/exp_avg" and so on; deep copies are not made.
QUATRAIN_API nn::NamedTensors optimizer_state(const torch::optim::Optimizer& optimizer,
                                              const NamedParameters& parameters);

/// The inverse; a missing tensor or one of a wrong shape is an error, and then nothing is changed.
QUATRAIN_API void load_optimizer_state(torch::optim::Optimizer& optimizer, const NamedParameters& parameters,
                                       const nn::NamedTensors& state);

}  // namespace quatrain::train
