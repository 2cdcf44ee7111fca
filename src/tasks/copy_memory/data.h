#pragma once

#include "quatrain/tasks/kind.h"
#include "tasks/copy_memory/model.h"

namespace quatrain::tasks {

/// Sequences drawn from the recipe's seed.
class CopyMemoryData : public Data {
 public:
  explicit CopyMemoryData(Recipe recipe) : Data(std::move(recipe)) {}

  bool has(std::string_view split) const override;
  std::vector<Input> inputs(std::string_view split, const Recipe& recipe, int64_t size,
                            int64_t count) const override;
  std::unique_ptr<Model> make_model(const Recipe& recipe) const override;
  std::unique_ptr<train::Task> make_task(std::shared_ptr<Model> model) const override;
};

}  // namespace quatrain::tasks
