#include <sstream>

#include "quatrain/train/recipe.h"
#include "train/recipe_toml.h"

namespace quatrain::train {
namespace {

constexpr const char* kOpening = R"md(# Recipes

A recipe is a TOML file that says everything a run is made from. `quatrain recipes` lists those that come with the
program, `quatrain recipes show NAME` prints one; `quatrain train` and `quatrain compare` take a name or a file.
Every key has a default, so a recipe holds only what differs; `--set table.key=value` overrides it for one run. The
effective recipe is stored with the run, as `recipe.toml`.

A recipe is read wholly before anything runs: an unknown key, a value out of range and sizes that do not go together are
errors that name the file, the line, the rule and the nearest valid value.

`[[twins]]` are the variants that `quatrain compare` trains beside each other. Each has a `name` and any keys of `[model]`
(`algebra = "phm(4)"`);
keys of `[train]` with their
    table's name (`train.rate = 5e-4`). The twin called `real` is what the others are compared with; where there is none, the first is.

This page is made from the program's own table of keys by `quatrain recipes document`.
)md";

const char* describe(const std::string& table) {
  if (table == "task") return "What is learned, from which data.";
  if (table == "agreement") return "Sizes of the generated sentences, where `task.data` is `agreement`.";
  if (table == "model") return "The Transformer. An example of another algebra is a twin of the same recipe.";
  if (table == "train") return "How it is trained.";
  return "What `quatrain compare` measures when the twins are trained.";
}

std::string default_of(const Key& key) {
  Recipe fresh;
  return std::visit(
      [](auto* value) {
        std::ostringstream out;
        out << toml::value(*value);
        return out.str();
      },
      key.field(fresh));
}

std::string values_of(const Key& key) {
  std::ostringstream out;
  for (const auto& value : key.values) out << (out.tellp() > 0 ? ", " : "") << "`" << value << "`";
  // Bounds beyond a million only keep sizes out of overflow.
  if (key.minimum && key.maximum) {
    out << number_text(*key.minimum);
    *key.maximum > 1e6 ? out << " or more" : out << " to " << number_text(*key.maximum);
  }
  return out.str();
}

}  // namespace

std::string recipe_document() {
  static constexpr const char* kTypes[] = {"boolean", "integer", "number", "string"};
  std::ostringstream out;
  out << kOpening;
  std::string table;
  Recipe fresh;
  for (const auto& key : recipe_keys()) {
    if (key.table != table) {
      table = key.table;
      out << "\n## [" << table << "]\n\n"
          << describe(table) << "\n\n| key | type | default | values | what |\n|---|---|---|---|---|\n";
    }
    out << "| `" << key.name << "` | " << kTypes[key.field(fresh).index()] << " | `" << default_of(key)
        << "` | " << values_of(key) << " | " << key.description << " |\n";
  }
  return out.str();
}

}  // namespace quatrain::train
