#include "cli/recipe_files.h"

#include <algorithm>
#include <map>

#include "algebra/nearest.h"
#include "algebra/text.h"
#include "quatrain/train/recipe.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;

RecipeFile from_file(const fs::path& path) {
  return {train::read_recipe_text(path.string()), path.string(), path.stem().string(), {}};
}

}  // namespace

RecipeFile find_recipe(const std::string& what, const std::string& from) {
  if (fs::is_directory(what)) {
    const fs::path folder = fs::path(what);
    for (const std::string& place : {std::string("recipe.toml"), from + "/recipe.toml",
                                     from + ".old/recipe.toml", std::string("best/recipe.toml")}) {
      if (!fs::exists(folder / place)) continue;
      auto found = from_file(folder / place);
      found.name = fs::absolute(folder).lexically_normal().filename().string();
      found.folder = folder;
      return found;
    }
    throw train::RecipeError("'" + what +
                             "' is a folder without a stored recipe: name a recipe, a TOML file or a run");
  }
  if (fs::exists(what)) return from_file(what);
  std::vector<std::string> names;
  for (auto& recipe : known_recipes()) {
    if (recipe.name == what) return recipe;
    names.push_back(recipe.name);
  }
  throw train::RecipeError("no recipe or file '" + what + "'" + did_you_mean(what, names) + "; known are " +
                           join(names));
}

std::vector<RecipeFile> known_recipes() {
  std::map<std::string, RecipeFile> all;
  for (const auto& [name, text] : embedded_recipes())
    all[std::string(name)] = {std::string(text), std::string(name) + ".toml", std::string(name), {}};
  // A recipe here hides one of the same name that came with the program.
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("recipes", none))
    if (entry.path().extension() == ".toml") all[entry.path().stem().string()] = from_file(entry.path());
  std::vector<RecipeFile> list;
  for (auto& [name, recipe] : all) list.push_back(std::move(recipe));
  return list;
}

}  // namespace quatrain::cli
