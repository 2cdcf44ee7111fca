#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "cli/commands.h"
#include "cli/recipe_files.h"
#include "quatrain/tasks/recipe.h"

namespace quatrain::cli {

/// What `--set` was given.
std::vector<tasks::Setting> parse_settings(const std::vector<std::string>& texts);

/// Reads a recipe that was found, with the settings of the command line: the twin of that name, or the recipe
/// itself where the name is empty. Other twins are not checked, since they are not trained.
tasks::Recipe read_one(const RecipeFile& file, const RecipeArguments& arguments, const std::string& twin);

/// The same with the wanted twins alone, in the order in which they were asked for.
tasks::Recipe read_with_twins(const RecipeFile& file, const TwinsArguments& arguments);

/// Throws a UsageError where OUT is a part of a run's checkpoint, which is replaced whole while the run
/// trains.
void refuse_inside_checkpoint(const std::filesystem::path& out);

/// Throws a UsageError where the folder that a command is to make is there already, or would be a part of a
/// checkpoint.
void require_new(const std::string& command, const std::filesystem::path& out);

/// Makes a folder of its own, runs/NAME[-PART]-DATE-TIME, which goes with the object where nothing was put
/// into it.
class FreshFolder {
 public:
  explicit FreshFolder(const std::string& name, const std::string& part = "");
  ~FreshFolder();
  FreshFolder(const FreshFolder&) = delete;
  FreshFolder& operator=(const FreshFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool made_runs_ = false;
};

/// Throws a RecipeError where a run was started with another recipe. Keys that only say how long to train,
/// how many threads to take, what to log and where data lie may differ. Returns false where there is no
/// checkpoint to continue from.
bool check_resumable(const tasks::Recipe& recipe, const std::filesystem::path& run,
                     const std::string& from = "last");

/// What to do with a run that is ready, as a list of commands. `dev`, `test`: its figures of these sets,
/// which are empty where there are none.
std::string next_steps(const tasks::Recipe& recipe, const std::filesystem::path& run,
                       const std::map<std::string, double>& dev, const std::map<std::string, double>& test);

/// Throws a RecipeError that names the keys that differ, other than those.
void check_same(const tasks::Recipe& recipe, const tasks::Recipe& stored,
                const std::filesystem::path& folder);

}  // namespace quatrain::cli
