#pragma once

#include <CLI/CLI.hpp>

#include "cli/commands.h"

/// Options that several commands have.
namespace quatrain::cli {

/// The recipe itself, --data, --split and --set.
void add_recipe_options(CLI::App& command, RecipeArguments& arguments);
/// --twins.
void add_twins(CLI::App& command, TwinsArguments& arguments);

}  // namespace quatrain::cli
