#include "quatrain/tasks/recipe.h"

#include <algorithm>
#include <set>
#include <sstream>

#include "quatrain/tasks/kind.h"
#include "quatrain/train/session.h"
#include "support/nearest_name.h"
#include "tasks/recipe_keys.h"
#include "tasks/recipe_toml.h"

namespace quatrain::tasks {

using train::Key;
using train::Keys;
using train::Value;

namespace {

std::string where(const Recipe& recipe, const std::string& key) {
  const auto found = recipe.origins.find(key);
  return found == recipe.origins.end() ? "recipe '" + recipe.name + "'" : found->second;
}

// The first where it has none of that name.
const Figure& figure_of(const About& about, const std::string& name) {
  for (const Figure& figure : about.figures)
    if (figure.name == name) return figure;
  return about.figures.front();
}

}  // namespace

Setting Setting::parse(std::string_view text) {
  const auto equals = text.find('=');
  const auto dot = text.find('.');
  if (equals == text.npos || dot == text.npos || dot > equals)
    throw RecipeError("--set must be of the form table.key=value, got '" + shorten(text) + "'");
  const auto trim = [](std::string_view part) {
    const auto first = part.find_first_not_of(" \t"), last = part.find_last_not_of(" \t");
    return first == part.npos ? std::string() : std::string(part.substr(first, last - first + 1));
  };
  return {trim(text.substr(0, equals)), trim(text.substr(equals + 1)), "--set " + std::string(text)};
}

void Options::check(const Recipe&) const {}

Recipe::Recipe() : Recipe(*kinds().front()) {}

// Where a recipe's defaults are others than the trainer's own.
Recipe::Recipe(const Kind& kind) : kind(&kind), options(kind.options()) {
  train.schedule.kind = train::ScheduleKind::cosine;
  train.schedule.warmup = 100;
  train.steps = 1000;
  train.clip = 1;
  train.keep = 2;
  train.seed = 1;
}

const About& Recipe::about() const {
  return kind->about();
}

const Figure& Recipe::selecting() const {
  return figure_of(about(), options->selecting());
}

const Figure& Recipe::judging() const {
  return figure_of(about(), options->judging());
}

void Recipe::refuse(const std::string& key, const std::string& rule) const {
  throw RecipeError(where(*this, key) + ": " + key + " " + rule);
}

void describe_shared(Recipe& recipe, Keys& keys) {
  keys.table("task", "What is learned, from which data.");
  std::vector<std::string> names;
  for (const Kind* kind : kinds()) names.push_back(kind->about().name);
  keys.add(
          "kind", [&recipe] { return Value(recipe.about().name); },
          [&recipe](const Value& value) {
            if (const auto& kind = std::get<std::string>(value); kind != recipe.about().name)
              throw std::invalid_argument("a recipe of kind " + recipe.about().name +
                                          " cannot become one of " + kind);
          },
          "The kind of task. It decides which other tables the recipe has.")
      .values = names;

  keys.table("train", "How it is trained.");
  train::describe(recipe.train, keys);
  constexpr double kMost = 1 << 20;
  keys.number("batch", recipe.batch, 1, kMost, "Examples in a batch.");
  keys.text(
          "weights", recipe.weights,
          "What to start from: a run's folder (its best checkpoint), a checkpoint's `model.safetensors`, or "
          "another safetensors file of a model of the same architecture. Empty: new random weights. "
          "`--weights` sets it.")
      .is_path();
  keys.number("threads", recipe.threads, 0, 1024, "Threads to compute with; 0: as many as torch takes.")
      .may_change();

  keys.table("compare",
             "How `quatrain compare` chooses rates, and what it measures when the twins are trained.");
  Recipe::Compare& compare = recipe.compare;
  keys.text("rates", compare.rates,
            "Learning rates to choose from, such as `3e-4, 1e-3, 3e-3`: each twin is trained with each, and "
            "keeps the one that is best on the dev set. Empty: `train.rate`.")
      .may_change();
  keys.number("rate_seeds", compare.rate_seeds, 1, 1000,
              "Number of seeds with which each rate is tried: the first ones of `--seeds`.")
      .may_change();
  keys.number("seconds", compare.seconds, 0, 1e5,
              "Approximate number of seconds for which the twins' times are measured.")
      .may_change();
  keys.number("layer_seconds", compare.layer_seconds, 0, 1e5,
              "Approximate number of seconds for which single layers are measured; 0: they are not.")
      .may_change();
  keys.number("layer_width", compare.layer_width, 8, 16384,
              "Inputs and outputs of the single layers; a multiple of 8.")
      .may_change();
}

// In the order of the kind's tables; what all kinds have stands first in each.
std::vector<Key> keys_of(Recipe& recipe) {
  Keys own, shared;
  recipe.options->describe(own);
  describe_shared(recipe, shared);
  auto tables = own.tables();
  for (const auto& table : shared.tables()) tables.push_back(table);
  auto first = shared.take(), then = own.take();
  std::vector<Key> all;
  std::set<std::string> seen;
  for (const auto& table : tables) {
    if (!seen.insert(table.name).second) continue;
    for (auto* keys : {&first, &then})
      for (Key& key : *keys)
        if (key.table == table.name) all.push_back(std::move(key));
  }
  return all;
}

std::optional<std::string> find_value(const Recipe& recipe, const std::string& key) {
  Recipe copy = recipe;  // options are reached through a mutable recipe
  for (const Key& one : keys_of(copy)) {
    if (one.full_name() != key) continue;
    const Value value = one.get();
    const auto* text = std::get_if<std::string>(&value);
    return text ? *text : toml_text(value);
  }
  return std::nullopt;
}

void check(const Recipe& recipe) {
  recipe.options->check(recipe);
  if (recipe.train.steps == 0 && recipe.train.epochs == 0)
    throw RecipeError(where(recipe, "train.steps") +
                      ": train.steps and train.epochs are both 0: set one of them");
  try {
    train::parse_device(recipe.train.device);
  } catch (const std::invalid_argument& error) {
    throw RecipeError(where(recipe, "train.device") + ": train.device: " + error.what());
  }
  rates_of(recipe);
  constexpr int64_t kOctonion = 8;
  if (const int64_t width = recipe.compare.layer_width; width % kOctonion != 0)
    recipe.refuse("compare.layer_width", "must be divisible by 8, the octonions' n, got " +
                                             std::to_string(width) +
                                             " (nearest: " + nearest_multiples(width, kOctonion) + ")");
  for (const auto& twin : recipe.twins) twin_recipe(recipe, twin);
}

bool acts_on_answers(const train::Key& key) {
  if (key.table == "train") return key.name == "threads";
  return key.table != "compare" && (key.free || key.answers);
}

void check_used(const Recipe& recipe, const std::vector<Setting>& settings) {
  std::vector<Recipe> all;
  for (const auto& twin : recipe.twins) all.push_back(twin_recipe(recipe, twin));
  if (all.empty()) all.push_back(recipe);
  for (const Setting& setting : settings) {
    std::string needs;
    const bool used = std::any_of(all.begin(), all.end(), [&](Recipe& one) {
      for (const Key& key : keys_of(one)) {
        if (key.full_name() != setting.key || !key.used) continue;
        needs = key.needs;
        return key.used();
      }
      return true;
    });
    if (!used)
      throw RecipeError(setting.origin + ": " + setting.key + " would do nothing: it needs " + needs);
  }
}

std::vector<std::string> rates_of(const Recipe& recipe) {
  std::vector<std::string> rates;
  std::vector<double> seen;
  std::istringstream list(recipe.compare.rates);
  for (std::string one; std::getline(list, one, ',');) {
    std::erase(one, ' ');
    Recipe tried = recipe;
    apply(tried, {"train.rate", one, where(recipe, "compare.rates") + ": compare.rates"});
    const double rate = tried.train.optimizer.learning_rate;
    if (std::find(seen.begin(), seen.end(), rate) != seen.end())
      recipe.refuse("compare.rates", "names " + one + " twice");
    seen.push_back(rate);
    rates.push_back(one);
  }
  return rates;
}

std::string nearest_multiples(int64_t value, int64_t of) {
  const int64_t below = value / of * of;
  return (below > 0 ? std::to_string(below) + ", " : "") + std::to_string(below + of);
}

const Recipe::Twin& find_twin(const Recipe& recipe, std::string_view name) {
  std::vector<std::string> known;
  for (const auto& twin : recipe.twins) {
    if (twin.name == name) return twin;
    known.push_back(twin.name);
  }
  throw RecipeError("recipe '" + recipe.name + "' has no twin '" + std::string(name) + "'" +
                    did_you_mean(name, known) +
                    (known.empty() ? "; it has none" : "; it has " + join(known)));
}

Recipe twin_recipe(const Recipe& recipe, const Recipe::Twin& twin) {
  Recipe own = recipe;
  own.twins.clear();
  own.name = twin.name;
  try {
    apply(own, twin.settings);
    check(own);
  } catch (const RecipeError& error) {  // its place may be a setting that all twins share
    throw RecipeError(std::string(error.what()) + ", in the twin '" + twin.name + "'");
  }
  return own;
}

std::string to_toml(const Recipe& recipe) {
  Recipe copy = recipe;
  std::ostringstream out;
  if (!recipe.description.empty()) out << "description = " << toml_text(Value(recipe.description)) << "\n";
  std::string table;
  for (const Key& key : keys_of(copy)) {
    if (key.table != table) out << (out.tellp() > 0 ? "\n" : "") << "[" << (table = key.table) << "]\n";
    out << key.name << " = " << toml_text(key.get()) << "\n";
  }
  for (const auto& twin : recipe.twins) {
    out << "\n[[twins]]\nname = " << toml_text(Value(twin.name)) << "\n";
    for (const auto& setting : twin.settings) {
      const bool own = setting.key.starts_with(kTwinTable);
      out << (own ? setting.key.substr(kTwinTable.size()) : setting.key) << " = " << setting.value << "\n";
    }
  }
  return out.str();
}

std::vector<std::string> differing_keys(const Recipe& a, const Recipe& b,
                                        const std::function<bool(const Key&)>& matters) {
  if (a.kind != b.kind) return {"task.kind"};
  Recipe left = a, right = b;
  const auto x = keys_of(left), y = keys_of(right);
  std::vector<std::string> keys;
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i].get() != y[i].get() && (!matters || matters(x[i]))) keys.push_back(x[i].full_name());
  return keys;
}

}  // namespace quatrain::tasks
