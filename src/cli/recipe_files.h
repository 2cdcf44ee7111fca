#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace quatrain::cli {

/// Where a recipe was found.
struct RecipeFile {
  std::string text;
  std::string origin;            ///< how messages call it
  std::string name;              ///< without its ending
  std::filesystem::path folder;  ///< the run or comparison it was stored with, if it was
};

/// What a folder is called, also where its path ends in a slash or is ".".
std::string folder_name(const std::filesystem::path& folder);

/// Finds what the user calls a recipe: a file; the folder of a run or of a comparison; the name of a file in
/// ./recipes or of a recipe that comes with the program. Else a RecipeError that names the nearest. A run's
/// is that of the checkpoint `from`, where that has one.
RecipeFile find_recipe(const std::string& what, const std::string& from = "last");

/// The names that find_recipe knows here, sorted, and where each comes from.
std::vector<RecipeFile> known_recipes();

/// The recipes that come with the program: name and text.
const std::vector<std::pair<std::string_view, std::string_view>>& embedded_recipes();

}  // namespace quatrain::cli
