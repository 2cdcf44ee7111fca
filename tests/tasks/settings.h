#pragma once

#include <string>
#include <vector>

#include "quatrain/tasks/recipe.h"

namespace quatrain::tasks {

/// "table.key=value" of each, as `--set` takes them.
inline std::vector<Setting> settings_of_tests(const std::vector<std::string>& settings) {
  std::vector<Setting> all;
  for (const auto& text : settings) all.push_back(Setting::parse(text));
  return all;
}

}  // namespace quatrain::tasks
