#include <cmath>
#include <sstream>

#include "quatrain/tasks/kind.h"
#include "tasks/recipe_keys.h"
#include "tasks/recipe_toml.h"

namespace quatrain::tasks {

using train::Key;

namespace {

constexpr const char* kOpening = R"md(# Recipes

A recipe is a TOML file that says everything a run is made from. `quatrain recipes` lists those that come with the
program, `quatrain recipes show NAME` prints one; `quatrain train` and `quatrain compare` take a name or a file.
Every key has a default, so a recipe holds only what differs; `--set table.key=value` overrides it for one run. The
effective recipe is stored with the run, as `recipe.toml`.

A recipe is read wholly before anything runs: an unknown key, a value out of range and sizes that do not go together are
errors that name the file, the line, the rule and the nearest valid value.

`task.kind` says what kind of task it is. A recipe has the tables of its own kind and those that all kinds share; a key of
another kind is an error that says so.

`[[twins]]` are the variants that `quatrain compare` trains beside each other. Each has a `name` and any keys of `[model]`
(`algebra = "phm(4)"`); keys of `[train]` with their table's name (`train.rate = 5e-4`). The twin called `real` is what the
others are compared with; where there is none, the first is.

The column *later* says where another value may be given than the one that a run was trained with: `resume`, when the
run goes on (`train RUN --resume`); `answers`, in `evaluate` and `predict`; `predict`, in `predict` alone.

PHM, QNLP, PHYDI and QRNN are papers: [references.md](references.md). This page is made from the program's own keys by
`quatrain recipes document`.
)md";

std::string values_of(const Key& key) {
  std::ostringstream out;
  for (const auto& value : key.values) out << (out.tellp() > 0 ? ", " : "") << "`" << value << "`";
  // Bounds beyond a million only keep sizes out of overflow.
  if (std::isfinite(key.minimum) && std::isfinite(key.maximum)) {
    out << number_text(key.minimum);
    key.maximum > 1e6 ? out << " or more" : out << " to " << number_text(key.maximum);
  }
  return out.str();
}

std::string later_of(const Key& key) {
  if (key.table == "compare") return "";
  std::string text = key.free ? "`resume`" : "";
  if (acts_on_answers(key))
    text += (text.empty() ? "" : ", ") + std::string(key.predicts ? "`predict`" : "`answers`");
  return text;
}

void write(std::ostringstream& out, const train::KeyTable& table, const std::vector<Key>& keys) {
  static constexpr const char* kTypes[] = {"boolean", "integer", "number", "string"};
  out << "\n### [" << table.name << "]\n\n"
      << table.description
      << "\n\n| key | type | default | values | later | what |\n|---|---|---|---|---|---|\n";
  for (const Key& key : keys) {
    if (key.table != table.name) continue;
    const train::Value value = key.get();
    const auto* number = std::get_if<double>(&value);
    out << "| `" << key.name << "` | " << kTypes[value.index()] << " | `"
        << (number ? number_text(*number) : toml_text(value)) << "` | " << values_of(key) << " | "
        << later_of(key) << " | " << key.description << " |\n";
  }
}

}  // namespace

std::string recipe_document() {
  std::ostringstream out;
  out << kOpening;
  const auto write_all = [&](train::Keys& keys) {
    const auto tables = keys.tables();
    const auto all = keys.take();
    for (const auto& table : tables) write(out, table, all);
  };
  for (const Kind* kind : kinds()) {
    out << "\n## kind = \"" << kind->about().name << "\"\n\n" << kind->about().summary << "\n";
    train::Keys keys;
    const auto options = kind->options();
    options->describe(keys);
    write_all(keys);
  }
  out << "\n## Every kind\n";
  Recipe recipe;
  train::Keys shared;
  describe_shared(recipe, shared);
  write_all(shared);
  return out.str();
}

}  // namespace quatrain::tasks
