#include "cli/recipe_options.h"

namespace quatrain::cli {

void add_recipe_options(CLI::App& command, RecipeArguments& arguments) {
  command
      .add_option("recipe", arguments.recipe,
                  "Name of a recipe, a TOML file, or the folder of a run or comparison")
      ->required()
      ->type_name("RECIPE");
  command
      .add_option("--data", arguments.data, "Folder of the data (default: the recipe's, then $QUATRAIN_DATA)")
      ->type_name("FOLDER")
      ->check(CLI::ExistingPath);
  command
      .add_option("--split", arguments.split,
                  "Where --data is one .tsv file of labelled texts: about what shares of the texts are "
                  "train, dev and test, 80/10/10")
      ->type_name("SHARES");
  command.add_option("--set", arguments.settings, "Override a key of the recipe; may be repeated")
      ->type_name("TABLE.KEY=VALUE")
      ->allow_extra_args(false);
}

void add_twins(CLI::App& command, TwinsArguments& arguments) {
  command
      .add_option("--twins", arguments.twins, "Only these of the recipe's twins: real,phm4 (default: all)")
      ->delimiter(',')
      ->type_name("NAMES");
}

}  // namespace quatrain::cli
