#include "tasks/data_folder.h"

#include <algorithm>
#include <cstdlib>

#include "support/text.h"

namespace quatrain::tasks {

namespace fs = std::filesystem;

void settle_folder(const std::string& reader, fs::path& folder, const std::vector<data::Reader>& known,
                   const std::string& asked, const std::string& recipe_name) {
  if (!asked.empty()) folder = asked;
  const auto found =
      std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.name == reader; });
  if (!asked.empty() && found != known.end() && !found->takes_folder) {
    std::vector<std::string> reading;
    for (const auto& one : known)
      if (one.takes_folder) reading.emplace_back(one.name);
    throw RecipeError(nothing_to_read(recipe_name, "data").what() +
                      ("; a folder is read by task.data = " + join(reading)));
  }
  if (found == known.end() || !found->needs_folder) return;
  const char* everywhere = std::getenv("QUATRAIN_DATA");
  if (folder.empty() && everywhere) folder = everywhere;
  if (folder.empty())
    throw RecipeError("recipe '" + recipe_name + "' needs the folder of its '" + reader +
                      "' data: pass --data FOLDER or set QUATRAIN_DATA");
  folder = fs::absolute(folder).lexically_normal();
}

RecipeError nothing_to_read(const std::string& recipe_name, const std::string& what) {
  return RecipeError("recipe '" + recipe_name + "' generates its " + what + ": --data has nothing to read");
}

std::string find_data_file(const fs::path& written, const fs::path& folder) {
  const fs::path below = folder / written;
  return fs::absolute(fs::exists(written) || !fs::exists(below) ? written : below)
      .lexically_normal()
      .string();
}

std::vector<std::string> names_of(const std::vector<data::Reader>& readers) {
  std::vector<std::string> all;
  for (const auto& reader : readers) all.emplace_back(reader.name);
  return all;
}

}  // namespace quatrain::tasks
