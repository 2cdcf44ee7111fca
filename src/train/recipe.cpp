#include "quatrain/train/recipe.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <type_traits>

#include "support/nearest_name.h"
#include "train/recipe_toml.h"

namespace quatrain::train {
namespace {

const char* type_of(const Field& field) {
  static constexpr const char* kNames[] = {"true or false", "an integer", "a number", "a string"};
  return kNames[field.index()];
}

std::vector<std::string> table_names() {
  std::vector<std::string> all;
  for (const auto& key : recipe_keys())
    if (all.empty() || all.back() != key.table) all.push_back(key.table);
  return all;
}

const Key& find_key(const std::string& name, const std::string& origin) {
  std::vector<std::string> known, elsewhere;
  for (const auto& key : recipe_keys()) {
    if (key.full_name() == name) return key;
    known.push_back(key.full_name());
    if (name.substr(name.find('.') + 1) == key.name) elsewhere.push_back(key.full_name());
  }
  const std::string hint =
      elsewhere.empty() ? did_you_mean(name, known) : " (did you mean " + elsewhere.front() + "?)";
  throw RecipeError(origin + ": '" + shorten(name) + "' is no key of a recipe" + hint);
}

// Gives a key the value of a TOML node.
void assign(Recipe& recipe, const Key& key, const toml::node& node, const std::string& origin) {
  const Field field = key.field(recipe);
  const auto fail = [&](const std::string& rule) {
    throw RecipeError(origin + ": " + key.full_name() + " must be " + rule + ", got " +
                      shorten(toml_text(node)));
  };
  std::visit(
      [&](auto* target) {
        using T = std::remove_pointer_t<decltype(target)>;
        // Integers pass for numbers; nothing else changes its type.
        const bool fits = std::is_same_v<T, double> ? node.is_number() : node.is<T>();
        if (!fits) fail(type_of(field));
        const T value = *node.value<T>();
        if constexpr (std::is_same_v<T, std::string>) {
          if (!key.values.empty() &&
              std::find(key.values.begin(), key.values.end(), value) == key.values.end()) {
            throw RecipeError(origin + ": " + key.full_name() + " must be one of " + join(key.values) +
                              ", got '" + shorten(value) + "'" + did_you_mean(value, key.values));
          }
          if (value.find_first_of("\n\r") != std::string::npos) fail("one line");
        } else if constexpr (!std::is_same_v<T, bool>) {
          const auto number = static_cast<double>(value);
          // Written so that NaN fails.
          if (key.minimum && !(number >= *key.minimum)) fail("at least " + number_text(*key.minimum));
          if (key.maximum && !(number <= *key.maximum)) fail("at most " + number_text(*key.maximum));
        }
        *target = value;
      },
      field);
  recipe.origins[key.full_name()] = origin;
}

std::string place(const std::string& origin, const toml::node& node) {
  return origin + ":" + std::to_string(node.source().begin.line);
}

void read_table(Recipe& recipe, const std::string& name, const toml::table& table,
                const std::string& origin) {
  for (const auto& [key, node] : table) {
    const std::string where = place(origin, node);
    assign(recipe, find_key(name + "." + std::string(key.str()), where), node, where);
  }
}

// A twin's own keys are those of [model]; [train]'s come in a table below it.
Recipe::Twin read_twin(const toml::table& table, const std::string& origin) {
  Recipe::Twin twin;
  const auto add = [&](const std::string& name, const toml::node& node) {
    const std::string where = place(origin, node);
    const Key& key = find_key(name, where);
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
      add("model." + name, node);
    }
  }
  const std::string where = place(origin, table);
  const bool plain = !twin.name.empty() && std::all_of(twin.name.begin(), twin.name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  if (!plain)
    throw RecipeError(
        where + ": a twin needs a name of the letters a-z, 0-9, _ and -, which names its folder; got '" +
        shorten(twin.name) + "'");
  return twin;
}

void read_twins(Recipe& recipe, const toml::node& node, const std::string& origin) {
  const auto* list = node.as_array();
  if (!list || !list->is_homogeneous<toml::table>())
    throw RecipeError(place(origin, node) + ": twins must be a list of tables: [[twins]]");
  constexpr size_t kMost = 100;
  if (list->size() > kMost)
    throw RecipeError(place(origin, node) + ": a recipe has at most " + std::to_string(kMost) +
                      " twins, got " + std::to_string(list->size()));
  for (const auto& element : *list) {
    auto twin = read_twin(*element.as_table(), origin);
    for (const auto& other : recipe.twins)
      if (other.name == twin.name)
        throw RecipeError(place(origin, element) + ": two twins are called '" + shorten(twin.name) + "'");
    recipe.twins.push_back(std::move(twin));
  }
}

}  // namespace

Setting Setting::parse(std::string_view text) {
  const auto equals = text.find('=');
  const auto dot = text.find('.');
  if (equals == text.npos || dot == text.npos || dot > equals)
    throw RecipeError("--set takes table.key=value, got '" + shorten(text) + "'");
  const auto trim = [](std::string_view part) {
    const auto first = part.find_first_not_of(" \t"), last = part.find_last_not_of(" \t");
    return first == part.npos ? std::string() : std::string(part.substr(first, last - first + 1));
  };
  return {trim(text.substr(0, equals)), trim(text.substr(equals + 1)), "--set " + std::string(text)};
}

void apply(Recipe& recipe, const Setting& setting) {
  const Key& key = find_key(setting.key, setting.origin);
  toml::table line;
  try {
    line = parse_toml("value = " + setting.value);
  } catch (const TextError&) {
    // A bare text, below.
  }
  const bool is_text = std::holds_alternative<std::string*>(key.field(recipe));
  const auto* node = line.size() == 1 ? line.get("value") : nullptr;
  if (node && (!is_text || node->is_string()))
    assign(recipe, key, *node, setting.origin);
  else
    assign(recipe, key, toml::value<std::string>(setting.value), setting.origin);
}

Recipe parse_recipe(std::string_view text, const std::string& origin, const std::string& name,
                    const std::vector<Setting>& settings) {
  toml::table root;
  try {
    root = parse_toml(text);
  } catch (const TextError& error) {
    throw RecipeError(origin + ":" + std::to_string(error.line()) + ": this is no TOML: " + error.what());
  }
  Recipe recipe;
  recipe.name = name;
  auto known = table_names();
  known.insert(known.end(), {"description", "twins"});
  for (const auto& [key, node] : root) {
    const std::string table(key.str());
    if (table == "description") {
      if (!node.is_string()) throw RecipeError(place(origin, node) + ": description must be a string");
      recipe.description = *node.value<std::string>();
    } else if (table == "twins") {
      read_twins(recipe, node, origin);
    } else if (std::find(known.begin(), known.end(), table) == known.end()) {
      throw RecipeError(place(origin, node) + ": '" + shorten(table) +
                        "' is no table of a recipe, which has " + join(known) + did_you_mean(table, known));
    } else if (const auto* below = node.as_table()) {
      read_table(recipe, table, *below, origin);
    } else {
      throw RecipeError(place(origin, node) + ": " + table + " must be a table: [" + table + "]");
    }
  }
  for (const auto& setting : settings) apply(recipe, setting);
  check(recipe);
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

Recipe read_recipe(const std::string& path, const std::vector<Setting>& settings) {
  const std::string text = read_recipe_text(path);
  return parse_recipe(text, path, std::filesystem::path(path).stem().string(), settings);
}

const Recipe::Twin& find_twin(const Recipe& recipe, std::string_view name) {
  std::vector<std::string> known;
  std::string list;
  for (const auto& twin : recipe.twins) {
    if (twin.name == name) return twin;
    known.push_back(twin.name);
    list += (list.empty() ? "" : ", ") + twin.name;
  }
  throw RecipeError("recipe '" + recipe.name + "' has no twin '" + std::string(name) + "'" +
                    did_you_mean(name, known) + (list.empty() ? "; it has none" : "; it has " + list));
}

Recipe twin_recipe(const Recipe& recipe, const Recipe::Twin& twin) {
  Recipe own = recipe;
  own.twins.clear();
  own.name = twin.name;
  for (const auto& setting : twin.settings) apply(own, setting);
  check(own);
  return own;
}

std::string to_toml(const Recipe& recipe) {
  Recipe copy = recipe;  // fields are reached through a mutable recipe
  std::ostringstream out;
  if (!recipe.description.empty())
    out << "description = " << toml::value<std::string>(recipe.description) << "\n";
  std::string table;
  for (const auto& key : recipe_keys()) {
    if (key.table != table) out << (out.tellp() > 0 ? "\n" : "") << "[" << (table = key.table) << "]\n";
    out << key.name << " = ";
    std::visit([&](auto* value) { out << toml::value(*value); }, key.field(copy));
    out << "\n";
  }
  for (const auto& twin : recipe.twins) {
    out << "\n[[twins]]\nname = " << toml::value<std::string>(twin.name) << "\n";
    for (const auto& setting : twin.settings) {
      const bool own = setting.key.starts_with("model.");
      out << (own ? setting.key.substr(6) : setting.key) << " = " << setting.value << "\n";
    }
  }
  return out.str();
}

std::vector<std::string> differing_keys(const Recipe& a, const Recipe& b) {
  Recipe left = a, right = b;
  std::vector<std::string> keys;
  for (const auto& key : recipe_keys()) {
    const Field x = key.field(left), y = key.field(right);
    const bool same = std::visit(
        [&](auto* value) { return *value == *std::get<std::remove_const_t<decltype(value)>>(y); }, x);
    if (!same) keys.push_back(key.full_name());
  }
  return keys;
}

}  // namespace quatrain::train
