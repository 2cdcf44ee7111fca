#include "cli/run_folder.h"

#include <algorithm>
#include <array>
#include <ctime>

#include "quatrain/train/checkpoint.h"
#include "train/run_files.h"

namespace quatrain::cli {

namespace fs = std::filesystem;

train::Recipe read_with_settings(const RecipeFile& file, const RecipeArguments& arguments) {
  std::vector<train::Setting> settings;
  for (const auto& text : arguments.settings) settings.push_back(train::Setting::parse(text));
  return train::parse_recipe(file.text, file.origin, file.name, settings);
}

fs::path fresh_folder(const std::string& name, const std::string& part) {
  const std::time_t now = std::time(nullptr);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "-%Y-%m-%d-%H%M%S", std::localtime(&now));
  const fs::path folder = fs::path("runs") / (name + (part.empty() ? "" : "-" + part) + date.data());
  for (int i = 1;; ++i) {
    const fs::path free = folder.string() + (i == 1 ? "" : "-" + std::to_string(i));
    if (!fs::exists(free)) return free;
  }
}

bool check_resumable(const train::Recipe& recipe, const fs::path& run, const std::string& from) {
  const bool begun = from != "last" || train::has_checkpoint(run);
  if (begun || fs::exists(run / train::kResultFile)) {
    const fs::path folder = train::find_checkpoint(run, begun ? from : "best");
    check_same(recipe, train::read_recipe((folder / "recipe.toml").string()), run);
  }
  return begun;
}

void check_same(const train::Recipe& recipe, const train::Recipe& stored, const fs::path& folder) {
  constexpr std::array kFree{"task.folder",
                             "task.vectors",
                             "train.steps",
                             "train.epochs",
                             "train.patience",
                             "train.log_every",
                             "train.checkpoint_every",
                             "train.threads",
                             "train.keep",
                             "train.nonfinite",
                             "train.device",
                             "compare.seconds",
                             "compare.layer_seconds",
                             "compare.layer_width"};
  std::string list;
  for (const auto& key : train::differing_keys(recipe, stored))
    if (std::find(kFree.begin(), kFree.end(), key) == kFree.end()) list += (list.empty() ? "" : ", ") + key;
  if (!list.empty())
    throw train::RecipeError("'" + folder.string() + "' was started with another recipe (they differ in " +
                             list + "): go on with its own, or choose another --out");
}

}  // namespace quatrain::cli
