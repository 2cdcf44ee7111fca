#pragma once

#include <torch/nn/module.h>

#include <string>
#include <utility>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/train/task.h"

/// Numbers of a model that are none.
namespace quatrain::train {

/// The first weights or buffer (running statistics) of which a value is not finite, such as "weights 'a.S'";
/// empty: there are none.
QUATRAIN_API std::string first_not_finite(const torch::nn::Module& model);

/// The figure by which a task says how much of a set has a loss. Where that is 0 a loss that is no number
/// casts no doubt on the answers.
inline constexpr const char* kWithLoss = "with_loss";

/// What there is to say where a set's loss is no number: figures can be made of such answers too; empty: it
/// is one, or there is none.
QUATRAIN_API std::string doubt_of(const Figures& figures, const std::string& set);

/// A model's buffers as they were, for a step that shall have changed nothing.
class KeptBuffers {
 public:
  void keep(const torch::nn::Module& model);
  /// Puts back what was kept.
  void restore() const;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;  // each with its copy
};

}  // namespace quatrain::train
