#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "quatrain/tasks/run.h"

namespace quatrain::tasks {

/// What of a set is not what the run was trained with, where the set alone is read to be scored.
inline std::vector<std::string> changed_set(const std::filesystem::path& run, const std::string& split) {
  const std::shared_ptr<Model> model = load_run(run);
  return changed_data(*load_data(model->recipe(), {.split = split, .model = model.get()}), run);
}

}  // namespace quatrain::tasks
