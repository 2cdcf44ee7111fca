#include "cli/recipe_files.h"

#include <algorithm>
#include <map>

#include "quatrain/tasks/recipe.h"
#include "quatrain/train/checkpoint.h"
#include "support/nearest_name.h"
#include "support/shell_word.h"
#include "support/text.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;

RecipeFile from_file(const fs::path& path) {
  return {tasks::read_recipe_text(path.string()), path.string(), tasks::recipe_name(path), {}};
}

}  // namespace

std::string folder_name(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

RecipeFile find_recipe(const std::string& what, const std::string& from) {
  const bool folder = fs::is_directory(what);
  if (folder) {
    // A damaged checkpoint is named as such, before a word of it is read.
    fs::path place = what;
    for (const std::string& which : {from, std::string("best"), std::string("last")})
      if (place == what && train::has_checkpoint(what, which)) place = train::find_checkpoint(what, which);
    if (fs::exists(place / "recipe.toml")) {
      auto found = from_file(place / "recipe.toml");
      found.name = folder_name(what);
      found.folder = what;
      return found;
    }
  } else if (fs::exists(what)) {
    return from_file(what);
  }
  std::vector<std::string> names;
  for (auto& recipe : known_recipes()) {
    if (recipe.name == what) return recipe;  // also beside a folder of data that is called like it
    names.push_back(recipe.name);
  }
  if (folder && train::holds_run(what))  // it ended while the first checkpoint was written
    throw tasks::RecipeError("the run '" + what +
                             "' has no checkpoint, and so no recipe: name the recipe that it was begun with, "
                             "as in quatrain train RECIPE --out " +
                             shell_word(what) + " --resume");
  if (folder)
    throw tasks::RecipeError(
        "'" + what +
        "' is a folder that contains no run and no recipe.toml: name a recipe, a TOML file or a run");
  throw tasks::RecipeError("there is no recipe or file '" + what + "'" + did_you_mean(what, names) +
                           "; the recipes are " + join(names));
}

std::vector<RecipeFile> known_recipes() {
  std::map<std::string, RecipeFile> all;
  for (const auto& [name, text] : embedded_recipes())
    all[std::string(name)] = {std::string(text), std::string(name) + ".toml", std::string(name), {}};
  // A recipe here hides one of the same name that came with the program.
  std::error_code none;
  for (fs::directory_iterator entry("recipes", none), end; !none && entry != end; entry.increment(none))
    if (entry->path().extension() == ".toml") all[entry->path().stem().string()] = from_file(entry->path());
  std::vector<RecipeFile> list;
  for (auto& [name, recipe] : all) list.push_back(std::move(recipe));
  return list;
}

}  // namespace quatrain::cli
