#include "cli/run_folder.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "quatrain/train/checkpoint.h"
#include "support/shell_word.h"
#include "support/text.h"
#include "train/checkpoint.h"
#include "train/run_files.h"

namespace quatrain::cli {

namespace fs = std::filesystem;

std::vector<tasks::Setting> parse_settings(const std::vector<std::string>& texts) {
  std::vector<tasks::Setting> settings;
  for (const auto& text : texts) settings.push_back(tasks::Setting::parse(text));
  return settings;
}

namespace {

// True of a run that was converted or averaged, and not trained: its recipe names the folder that it was
// written to, and it may have been moved.
bool starts_from_itself(const fs::path& run) {
  if (run.empty() || !train::is_checkpoint(run / "best")) return false;
  return train::is_average(run) || (train::step_of(run / "best") == 0 && !train::has_checkpoint(run) &&
                                    !fs::exists(run / train::kResultFile));
}

tasks::Recipe read_chosen(const RecipeFile& file, const RecipeArguments& arguments,
                          const std::function<void(tasks::Recipe&)>& choose_twins) {
  auto settings = parse_settings(arguments.settings);
  const bool chosen = std::ranges::find(settings, "train.weights", &tasks::Setting::key) != settings.end();
  const auto choose = [&](tasks::Recipe& recipe) {
    if (!chosen && !recipe.weights.empty() && starts_from_itself(file.folder))
      recipe.weights = fs::absolute(file.folder).lexically_normal().string();
    choose_twins(recipe);
  };
  if (!arguments.split.empty()) settings.push_back({"task.split", arguments.split, "--split"});
  return tasks::parse_recipe(file.text, file.origin, file.name, settings, choose);
}

}  // namespace

tasks::Recipe read_one(const RecipeFile& file, const RecipeArguments& arguments, const std::string& twin) {
  return read_chosen(file, arguments, [&](tasks::Recipe& recipe) {
    if (!twin.empty()) recipe = tasks::twin_recipe(recipe, tasks::find_twin(recipe, twin));
    recipe.twins.clear();
  });
}

tasks::Recipe read_with_twins(const RecipeFile& file, const TwinsArguments& arguments) {
  return read_chosen(file, arguments, [&](tasks::Recipe& recipe) {
    if (arguments.twins.empty()) return;
    std::vector<tasks::Recipe::Twin> wanted;
    for (const auto& name : arguments.twins) {
      wanted.push_back(tasks::find_twin(recipe, name));
      for (size_t i = 0; i + 1 < wanted.size(); ++i)
        if (wanted[i].name == name) throw UsageError("--twins names " + name + " twice");
    }
    recipe.twins = std::move(wanted);
  });
}

void refuse_inside_checkpoint(const fs::path& out) {
  std::error_code none;
  for (fs::path place = fs::weakly_canonical(fs::absolute(out), none); place.has_relative_path();
       place = place.parent_path())
    if (train::is_checkpoint(place))
      throw UsageError("'" + out.string() + "' belongs to '" + place.string() +
                       "', a checkpoint, which training replaces as a whole: choose a place outside of it");
}

void require_new(const std::string& command, const fs::path& out) {
  refuse_inside_checkpoint(out);
  if (fs::exists(out)) throw UsageError(command + ": '" + out.string() + "' exists: choose another name");
}

FreshFolder::FreshFolder(const std::string& name, const std::string& part) {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "-%Y-%m-%d-%H%M%S", std::localtime(&now));
  const fs::path folder = fs::path("runs") / (name + (part.empty() ? "" : "-" + part) + date.data());
  made_runs_ = fs::create_directories("runs");
  for (int i = 1; path_.empty(); ++i) {
    const fs::path free = folder.string() + (i == 1 ? "" : "-" + std::to_string(i));
    if (fs::create_directory(free)) path_ = free;
  }
}

FreshFolder::~FreshFolder() {
  std::error_code not_empty;
  if (fs::remove(path_, not_empty) && made_runs_) fs::remove("runs", not_empty);
}

bool check_resumable(const tasks::Recipe& recipe, const fs::path& run, const std::string& from) {
  const bool finished = fs::exists(run / train::kResultFile);
  const bool begun =
      from != "last" || train::has_checkpoint(run, "last") || (!finished && train::has_checkpoint(run));
  if (begun || finished) {
    const fs::path folder = train::find_checkpoint(run, begun ? from : "best");
    check_same(recipe, tasks::read_recipe((folder / "recipe.toml").string()), run);
  }
  return begun;
}

std::string next_steps(const tasks::Recipe& recipe, const fs::path& run,
                       const std::map<std::string, double>& dev, const std::map<std::string, double>& test) {
  const std::string word = shell_word(run), predict = "  quatrain predict " + word + "\n";
  const std::string split = !test.empty() ? "" : !dev.empty() ? " --split dev" : " --split train";
  return "Next:\n" + (recipe.options->answers_lines() ? predict : "") + "  quatrain evaluate " + word +
         split + "\n";
}

void check_same(const tasks::Recipe& recipe, const tasks::Recipe& stored, const fs::path& folder) {
  const std::string list =
      join(tasks::differing_keys(recipe, stored, [](const train::Key& key) { return !key.free; }));
  if (!list.empty())
    throw tasks::RecipeError("the run '" + folder.string() +
                             "' was started with another recipe (different: " + list +
                             "): continue with the run's own recipe, or choose another --out");
}

}  // namespace quatrain::cli
