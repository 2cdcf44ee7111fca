#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "quatrain/tasks/kind.h"

/// From a recipe or a run to the things that it names, of whatever kind.
namespace quatrain::tasks {

/// Reads or generates the data of a recipe. Paths of the recipe become absolute.
QUATRAIN_API std::unique_ptr<Data> load_data(Recipe recipe, const DataRequest& request = {});

/// A model drawn from the recipe's seed; with the weights to start from, where the recipe names some and the
/// caller wants them. `recipe` may be a twin's.
QUATRAIN_API std::unique_ptr<Model> make_model(const Recipe& recipe, const Data& data,
                                               bool with_weights = true);
/// A task for such a model.
QUATRAIN_API std::unique_ptr<train::Task> make_task(const Recipe& recipe, const Data& data,
                                                    bool with_weights = true);

/// What there is to say before a training on data without a dev or a test set; nothing where both are there.
QUATRAIN_API std::vector<std::string> notes_of_missing_sets(const Data& data);

/// What a run that is loaded is for: settings that say what `predict` writes change no figure of a set.
enum class Use { answers, scores };

/// The model of a run's best checkpoint, in evaluation mode. Throws a RecipeError where the folder is not a
/// run. `settings` change its recipe; a key that a resumed run could not change either is a RecipeError.
QUATRAIN_API std::unique_ptr<Model> load_run(const std::filesystem::path& run,
                                             const std::vector<Setting>& settings = {},
                                             Use use = Use::answers);
/// The same from the folder of any checkpoint.
QUATRAIN_API std::unique_ptr<Model> load_checkpoint(const std::filesystem::path& folder,
                                                    const std::vector<Setting>& settings = {},
                                                    Use use = Use::answers);

/// What of the data is not as it was when the run was trained, by name ("test.tsv"), as far as its best
/// checkpoint says.
QUATRAIN_API std::vector<std::string> changed_data(const Data& data, const std::filesystem::path& run);

/// What a model answers to lines from elsewhere, up to the first that has no answer.
struct QUATRAIN_API Answers {
  std::vector<std::string> answers;
  std::string problem;  ///< why the next line has none; empty where all have one
};
QUATRAIN_API Answers answer(Model& model, std::span<const std::string> lines);

/// Model::inputs of lines from elsewhere, which are checked as answer() checks them, in the type of the
/// model's parameters. No lines are an error.
QUATRAIN_API std::vector<at::Tensor> inputs_of(Model& model, const std::vector<std::string>& lines);

/// Sets torch's threads where the recipe names a number.
QUATRAIN_API void set_threads(const Recipe& recipe);

}  // namespace quatrain::tasks
