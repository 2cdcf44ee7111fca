#include <cstdio>

#include "cli/commands.h"
#include "cli/recipe_files.h"
#include "quatrain/tasks/recipe.h"

namespace quatrain::cli {

int recipes_list_command() {
  for (const auto& file : known_recipes()) {
    const auto recipe = tasks::parse_recipe(file.text, file.origin, file.name);
    std::string twins;
    for (const auto& twin : recipe.twins) twins += (twins.empty() ? "" : ", ") + twin.name;
    std::printf("%s\n    %s\n", file.name.c_str(), recipe.description.c_str());
    if (!twins.empty()) std::printf("    twins: %s\n", twins.c_str());
  }
  std::printf("\nquatrain recipes show NAME prints one; docs/recipes.md describes every key.\n");
  return kSuccess;
}

int recipes_show_command(const std::string& name) {
  std::fputs(find_recipe(name).text.c_str(), stdout);
  return kSuccess;
}

int recipes_document_command() {
  std::fputs(tasks::recipe_document().c_str(), stdout);
  return kSuccess;
}

}  // namespace quatrain::cli
