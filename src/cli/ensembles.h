#pragma once

#include <string>
#include <vector>

#include "quatrain/tasks/kind.h"
#include "quatrain/train/session.h"

namespace quatrain::cli {

/// Loads other runs, with which the model of `run` shall answer (`--with`). Throws a RecipeError where they
/// cannot answer together.
void join_runs(tasks::Model& model, const std::string& run, const std::vector<std::string>& with,
               const train::Session& session);

}  // namespace quatrain::cli
