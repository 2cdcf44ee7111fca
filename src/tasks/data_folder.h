#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "quatrain/data/dataset.h"
#include "quatrain/tasks/recipe.h"

namespace quatrain::tasks {

/// Settles where a reader's data lie: in the folder that was asked for, else in the recipe's own, else in
/// QUATRAIN_DATA. The result is absolute; a reader that generates its data needs none. Throws a RecipeError
/// where there is none, or where one was asked for that the reader would not read.
void settle_folder(const std::string& reader, std::filesystem::path& folder,
                   const std::vector<data::Reader>& known, const std::string& asked,
                   const std::string& recipe_name);

/// What is thrown where a folder was asked for and the recipe generates `what` it learns from.
RecipeError nothing_to_read(const std::string& recipe_name, const std::string& what);

/// A file that a recipe names: where it is written, or else below the folder of the data; absolute.
std::string find_data_file(const std::filesystem::path& written, const std::filesystem::path& folder);

/// What a recipe calls the readers.
std::vector<std::string> names_of(const std::vector<data::Reader>& readers);

}  // namespace quatrain::tasks
