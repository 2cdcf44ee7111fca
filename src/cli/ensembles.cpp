#include "cli/ensembles.h"

#include "quatrain/tasks/run.h"

namespace quatrain::cli {

void join_runs(tasks::Model& model, const std::string& run, const std::vector<std::string>& with,
               const train::Session& session) {
  for (const auto& other_run : with) {
    const auto other = tasks::load_run(other_run);
    session.move(other->module());
    try {
      model.answer_with(*other);
    } catch (const tasks::RecipeError& error) {
      throw tasks::RecipeError("the runs '" + run + "' and '" + other_run +
                               "' cannot answer together: " + error.what());
    }
  }
}

}  // namespace quatrain::cli
