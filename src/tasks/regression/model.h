#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quatrain/nn/linear.h"
#include "quatrain/tasks/kind.h"
#include "tasks/regression/options.h"

namespace quatrain::tasks {

/// The layer `map` over what the rule's inputs become.
///
/// Of a product q * p = sum_i q_i A_i p the features are p_b q_i, at b n + i. A layer over an algebra of the
/// same n computes sum_i A_i (x) S_i: with S_i the i-th unit row vector, which is not trained, that is the
/// product, and A the only thing to learn. It enters linearly, so that the pairs determine it: it is
/// recovered, and not one of its equivalents.
class Regressor : public torch::nn::Module {
 public:
  explicit Regressor(const RegressionOptions& options);
  /// x: (B, inputs). Returns (B, outputs).
  at::Tensor forward(const at::Tensor& x);
  /// The multiplication table that the layer has come to, indexed as an algebra's (i, row, column).
  at::Tensor table() const;

  nn::Linear map{nullptr};

 private:
  bool product_;
  int64_t outputs_;
};

class RegressionModel : public Model {
 public:
  explicit RegressionModel(Recipe recipe);

  torch::nn::Module& module() override { return *regressor; }
  /// {x}.
  at::Tensor forward(const std::vector<at::Tensor>& input) override;
  std::string line_problem(const std::string& line) const override;
  /// Numbers in, numbers out, with tabs between.
  std::vector<std::string> predict(const std::vector<std::string>& lines) override;
  std::vector<at::Tensor> inputs(const std::vector<std::string>& lines) override;
  std::unique_ptr<Model> in_algebra(const std::string& algebra) const override;
  const RegressionOptions& own() const { return recipe_.own<RegressionOptions>(); }

  std::shared_ptr<Regressor> regressor;
};

}  // namespace quatrain::tasks
