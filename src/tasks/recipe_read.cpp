#include <algorithm>
#include <filesystem>
#include <type_traits>

#include "quatrain/tasks/kind.h"
#include "support/nearest_name.h"
#include "tasks/recipe_keys.h"
#include "tasks/recipe_toml.h"
#include "train/checkpoint.h"

// Recipes and settings as they are written.
namespace quatrain::tasks {

namespace fs = std::filesystem;
using train::Key;
using train::Value;

namespace {

const Kind* find_kind(std::string_view name) {
  for (const Kind* kind : kinds())
    if (kind->about().name == name) return kind;
  return nullptr;
}

// What torch and other trainers call a key.
std::string_view called_elsewhere(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"lr", "rate"},
      {"learning_rate", "rate"},
      {"batch_size", "batch"},
      {"max_epochs", "epochs"},
      {"num_epochs", "epochs"},
      {"max_steps", "steps"},
      {"d_model", "width"},
      {"hidden_size", "width"},
      {"nhead", "heads"},
      {"num_heads", "heads"},
      {"dim_feedforward", "feed_forward"},
      {"num_layers", "layers"},
      {"optim", "optimizer"},
      {"scheduler", "schedule"},
      {"warmup_steps", "warmup"},
      {"warmup_ratio", "warmup_share"},
      {"clip_grad_norm", "clip"},
      {"dtype", "precision"}};
  for (const auto& [theirs, ours] : kNames)
    if (theirs == name) return ours;
  return {};
}

// The keys of a recipe under its names.
class Table {
 public:
  explicit Table(Recipe& recipe) : recipe_(recipe), keys_(keys_of(recipe)) {}

  const std::vector<Key>& keys() const { return keys_; }

  const Key& find(const std::string& name, const std::string& origin) const {
    std::vector<std::string> known, elsewhere;
    const std::string last = name.substr(name.find('.') + 1);
    for (const auto& key : keys_) {
      if (key.full_name() == name) return key;
      known.push_back(key.full_name());
      if (key.name == last || key.name == called_elsewhere(last)) elsewhere.push_back(key.full_name());
    }
    refuse_other_kinds(name, "key", origin, [&](const Key& key) { return key.full_name() == name; });
    const std::string hint =
        elsewhere.empty() ? did_you_mean(name, known) : " (did you mean " + elsewhere.front() + "?)";
    throw RecipeError(origin + ": a recipe has no key '" + shorten(name) + "'" + hint);
  }

  // Throws where another kind has what this one has not.
  template <class Match>
  void refuse_other_kinds(const std::string& name, const char* what, const std::string& origin,
                          const Match& match) const {
    std::vector<std::string> others;
    for (const Kind* kind : kinds()) {
      if (kind == recipe_.kind) continue;
      Recipe other(*kind);
      const auto keys = keys_of(other);
      if (std::any_of(keys.begin(), keys.end(), match)) others.push_back(kind->about().name);
    }
    if (!others.empty())
      throw RecipeError(origin + ": only recipes of kind" + (others.size() > 1 ? "s " : " ") + join(others) +
                        " have the " + what + " '" + name + "', and this recipe is of kind " +
                        recipe_.about().name);
  }

  // Gives a key the value of a TOML node.
  void assign(const Key& key, const toml::node& node, const std::string& origin) {
    const Value now = key.get();
    const auto fail = [&](const std::string& rule) {
      throw RecipeError(origin + ": " + key.full_name() + " must be " + rule + ", got " +
                        shorten(toml_text(node)));
    };
    std::visit(
        [&](const auto& before) {
          using T = std::remove_cvref_t<decltype(before)>;
          // Integers pass for numbers; nothing else changes its type.
          const bool fits = std::is_same_v<T, double> ? node.is_number() : node.is<T>();
          static constexpr const char* kTypes[] = {"true or false", "an integer", "a number", "a string"};
          if (!fits) fail(kTypes[now.index()]);
          T value = *node.value<T>();
          if constexpr (std::is_same_v<T, std::string>) {
            if (!key.values.empty() &&
                std::find(key.values.begin(), key.values.end(), value) == key.values.end())
              throw RecipeError(origin + ": " + key.full_name() + " must be one of " + join(key.values) +
                                ", got '" + shorten(value) + "'" + did_you_mean(value, key.values));
            if (value.find_first_of("\n\r") != std::string::npos) fail("one line");
          } else if constexpr (!std::is_same_v<T, bool>) {
            const auto number = static_cast<double>(value);
            // Written so that NaN fails.
            if (!(number >= key.minimum)) fail("at least " + number_text(key.minimum));
            if (!(number <= key.maximum)) fail("at most " + number_text(key.maximum));
          }
          try {
            key.set(Value(std::move(value)));
          } catch (const std::invalid_argument& error) {
            std::string_view what = error.what();  // "algebra: ..."
            if (what.starts_with(key.name + ": ")) what.remove_prefix(key.name.size() + 2);
            throw RecipeError(origin + ": " + key.full_name() + ": " + std::string(what));
          }
        },
        now);
    recipe_.origins[key.full_name()] = origin;
    if (key.full_name() == "train.epochs") use_default_steps();
  }

  // Steps that nobody asked for would cut epochs short.
  void use_default_steps() {
    if (!recipe_.origins.contains("train.steps"))
      recipe_.train.steps = recipe_.train.epochs > 0 ? 0 : Recipe(*recipe_.kind).train.steps;
  }

  void apply(const Setting& setting) {
    const Key& key = find(setting.key, setting.origin);
    toml::table line;
    try {
      line = parse_toml("value = " + setting.value);
    } catch (const TextError&) {
      // A bare text, below.
    }
    const bool is_text = std::holds_alternative<std::string>(key.get());
    const auto* node = line.size() == 1 ? line.get("value") : nullptr;
    if (node && (!is_text || node->is_string()))
      assign(key, *node, setting.origin);
    else
      assign(key, toml::value<std::string>(setting.value), setting.origin);
  }

 private:
  Recipe& recipe_;
  std::vector<Key> keys_;
};

std::string place(const std::string& origin, const toml::node& node) {
  return origin + ":" + std::to_string(node.source().begin.line);
}

// A twin's own keys are those of [model]; [train]'s come in a table below it.
Recipe::Twin read_twin(const Table& keys, const toml::table& table, const std::string& origin) {
  Recipe::Twin twin;
  const auto add = [&](const std::string& name, const toml::node& node) {
    const std::string where = place(origin, node);
    const Key& key = keys.find(name, where);
    if (key.table != "model" && key.table != "train")
      throw RecipeError(where + ": a twin may set keys of [model] and [train] only, got " + shorten(name));
    twin.settings.push_back({name, toml_text(node), where});
  };
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    if (name == "name") {
      if (!node.is_string()) throw RecipeError(place(origin, node) + ": a twin's name must be a string");
      twin.name = *node.value<std::string>();
    } else if (const auto* below = node.as_table()) {
      for (const auto& [inner, value] : *below) add(name + "." + std::string(inner.str()), value);
    } else {
      add(std::string(kTwinTable) + name, node);
    }
  }
  const std::string where = place(origin, table);
  const bool plain = !twin.name.empty() && std::all_of(twin.name.begin(), twin.name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  if (!plain)
    throw RecipeError(
        where + ": a twin's name, which is also its folder's, must consist of a-z, 0-9, _ and -, got '" +
        shorten(twin.name) + "'");
  return twin;
}

void read_twins(Recipe& recipe, const Table& keys, const toml::node& node, const std::string& origin) {
  const auto* list = node.as_array();
  if (!list || !list->is_homogeneous<toml::table>())
    throw RecipeError(place(origin, node) + ": twins must be a list of tables: [[twins]]");
  constexpr size_t kMost = 100;
  if (list->size() > kMost)
    throw RecipeError(place(origin, node) + ": a recipe has at most " + std::to_string(kMost) +
                      " twins, got " + std::to_string(list->size()));
  for (const auto& element : *list) {
    auto twin = read_twin(keys, *element.as_table(), origin);
    for (const auto& other : recipe.twins)
      if (other.name == twin.name)
        throw RecipeError(place(origin, element) + ": two twins have the name '" + shorten(twin.name) +
                          "': give each its own");
    recipe.twins.push_back(std::move(twin));
  }
}

// The kind is read first, because it decides which keys exist. An unknown kind is reported when its key is
// read.
const Kind& kind_of(const toml::table& root, const std::vector<Setting>& settings) {
  std::string name;
  if (const auto written = root["task"]["kind"].value<std::string>()) name = *written;
  for (const Setting& setting : settings)
    if (setting.key == "task.kind") {
      name = setting.value;
      std::erase_if(name, [](char c) { return c == '"' || c == '\''; });
    }
  const Kind* kind = find_kind(name);
  return kind ? *kind : *kinds().front();
}

void read_tables(Recipe& recipe, const toml::table& root, const std::string& origin) {
  Table keys(recipe);
  std::vector<std::string> known;
  for (const auto& key : keys.keys())
    if (known.empty() || known.back() != key.table) known.push_back(key.table);
  known.insert(known.end(), {"description", "twins"});
  for (const auto& [key, node] : root) {
    const std::string table(key.str());
    const std::string where = place(origin, node);
    if (table == "description") {
      if (!node.is_string()) throw RecipeError(where + ": description must be a string");
      recipe.description = *node.value<std::string>();
    } else if (table == "twins") {
      read_twins(recipe, keys, node, origin);
    } else if (std::find(known.begin(), known.end(), table) == known.end()) {
      keys.refuse_other_kinds(table, "table", where, [&](const Key& one) { return one.table == table; });
      throw RecipeError(where + ": a recipe has no table '" + shorten(table) + "'" +
                        did_you_mean(table, known) + "; it may have " + join(known));
    } else if (const auto* below = node.as_table()) {
      for (const auto& [inner, value] : *below) {
        const std::string line = place(origin, value);
        const Key& found = keys.find(table + "." + std::string(inner.str()), line);
        // A setting may have chosen another kind, so the file's value is ignored.
        if (found.full_name() == "task.kind" && find_kind(value.value_or(std::string()))) continue;
        keys.assign(found, value, line);
      }
    } else {
      throw RecipeError(where + ": " + table + " must be a table: [" + table + "]");
    }
  }
}

}  // namespace

void apply(Recipe& recipe, const Setting& setting) {
  Table(recipe).apply(setting);
}

void apply(Recipe& recipe, const std::vector<Setting>& settings) {
  Table keys(recipe);
  for (const Setting& setting : settings) keys.apply(setting);
}

Recipe parse_recipe(std::string_view text, const std::string& origin, const std::string& name,
                    const std::vector<Setting>& settings, const std::function<void(Recipe&)>& choose) {
  toml::table root;
  try {
    root = parse_toml(text);
  } catch (const TextError& error) {
    throw RecipeError(origin + ":" + std::to_string(error.line()) +
                      ": this cannot be read as TOML: " + error.what());
  }
  Recipe recipe(kind_of(root, settings));
  recipe.name = name;
  read_tables(recipe, root, origin);
  apply(recipe, settings);
  if (choose) choose(recipe);
  check(recipe);
  check_used(recipe, settings);
  return recipe;
}

std::string read_recipe_text(const std::string& path) {
  constexpr size_t kLargest = 1 << 20;
  try {
    return read_file(path, kLargest);
  } catch (const std::invalid_argument& error) {
    throw RecipeError("cannot read the recipe '" + path + "': " + error.what());
  }
}

std::string recipe_name(const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal(), folder = whole.parent_path();
  const fs::path named = train::is_checkpoint(folder) ? folder.parent_path() : folder;
  const bool stored = whole.filename() == "recipe.toml" && named.has_filename();
  return (stored ? named.filename() : whole.stem()).string();
}

Recipe read_recipe(const std::string& path, const std::vector<Setting>& settings) {
  const std::string text = read_recipe_text(path);
  return parse_recipe(text, path, recipe_name(path), settings);
}

}  // namespace quatrain::tasks
