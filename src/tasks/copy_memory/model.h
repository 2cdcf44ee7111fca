#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quatrain/tasks/kind.h"
#include "tasks/copy_memory/options.h"

namespace quatrain::tasks {

class CopyMemoryModel : public Model {
 public:
  explicit CopyMemoryModel(Recipe recipe);

  torch::nn::Module& module() override { return *network; }
  /// {symbols (recall, B) int64}: logits (steps, B, classes).
  at::Tensor forward(const std::vector<at::Tensor>& input) override;
  std::string line_problem(const std::string& line) const override;
  /// Digits in, the digits that are recalled out; where it names a blank, a dot.
  std::vector<std::string> predict(const std::vector<std::string>& lines) override;
  std::vector<at::Tensor> inputs(const std::vector<std::string>& lines) override;
  std::unique_ptr<Model> in_algebra(const std::string& algebra) const override;
  const CopyMemoryOptions& own() const { return recipe_.own<CopyMemoryOptions>(); }

  /// What is to be named at each step, (steps, B), for symbols (recall, B).
  at::Tensor targets(const at::Tensor& symbols) const;

  models::RecurrentNetwork network;
};

}  // namespace quatrain::tasks
