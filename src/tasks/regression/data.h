#pragma once

#include <map>
#include <memory>
#include <string>

#include "quatrain/tasks/kind.h"
#include "tasks/regression/model.h"

namespace quatrain::tasks {

/// Examples of a rule.
struct Examples {
  at::Tensor x;  ///< (count, inputs)
  at::Tensor y;  ///< (count, outputs)
};

using ExamplesBySplit = std::map<std::string, Examples, std::less<>>;

/// Examples drawn from the recipe's seed.
class RegressionData : public Data {
 public:
  /// All splits, or the one that is named.
  RegressionData(Recipe recipe, const std::string& only);

  bool has(std::string_view split) const override { return splits_->contains(split); }
  std::vector<Input> inputs(std::string_view split, const Recipe& recipe, int64_t size,
                            int64_t count) const override;
  std::unique_ptr<Model> make_model(const Recipe& recipe) const override;
  std::unique_ptr<train::Task> make_task(std::shared_ptr<Model> model) const override;

 private:
  std::shared_ptr<ExamplesBySplit> splits_;
};

}  // namespace quatrain::tasks
