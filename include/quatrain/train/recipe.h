#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "quatrain/api.h"

/// Recipes: everything that a run is made from, as one TOML file.
///
/// One table of keys (recipe_keys) says what exists. Reading, defaults, `--set`, the effective recipe that is
/// stored with a run, and docs/recipes.md are all derived from it.
namespace quatrain::train {

/// A recipe that cannot be used: one sentence with the place, the key, the rule, the value and the way out.
class QUATRAIN_API RecipeError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// One value for one key, and where it was written (`agreement.toml:12`, `--set`).
struct QUATRAIN_API Setting {
  std::string key;    ///< `table.key`
  std::string value;  ///< as in TOML; for a key that takes a string, a bare text too
  std::string origin;

  /// Reads `table.key=value`, as `--set` takes it.
  static Setting parse(std::string_view text);
};

/// A whole recipe. The members' initial values are the defaults; recipe_keys() describes each.
struct QUATRAIN_API Recipe {
  std::string name = "recipe";  ///< the file's name without its ending
  std::string description;

  struct Task {
    std::string kind = "text_classification";
    std::string data = "tsv";
    std::string folder;
    std::string tokenizer = "automatic";
    int64_t min_count = 1;
    int64_t max_vocabulary = 50000;
    int64_t max_length = 256;
    std::string vectors;
    bool freeze_vectors = false;
  } task;

  struct Agreement {
    int64_t train = 40000;
    int64_t dev = 1000;
    int64_t test = 4000;
    int64_t seed = 0;
  } agreement;

  struct Model {
    std::string algebra = "quaternion";
    std::string scope = "full";
    std::string norm = "pre";
    bool printed = false;
    bool norm_per_component = false;
    std::string attention = "automatic";
    bool packed = false;
    std::string split = "inside";
    std::string activation = "relu";
    std::string initialiser = "glorot";
    bool embedding_scale = true;
    int64_t width = 128;
    int64_t heads = 4;
    int64_t feed_forward = 512;
    int64_t layers = 2;
    double dropout = 0.1;
    bool dropout_per_unit = false;
  } model;

  struct Train {
    std::string optimizer = "adam";
    double rate = 1e-3;
    double weight_decay = 0;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double momentum = 0;
    std::string schedule = "cosine";
    int64_t warmup = 100;
    double factor = 0.5;
    int64_t every = 0;
    int64_t plateau_patience = 0;
    double floor = 0;
    int64_t steps = 1000;
    int64_t epochs = 0;
    int64_t batch = 32;
    int64_t accumulate = 1;
    double clip = 1.0;
    double label_smoothing = 0;
    std::string precision = "float32";
    int64_t evaluate_every = 0;
    int64_t patience = 0;
    int64_t checkpoint_every = 0;
    int64_t keep = 2;
    std::string nonfinite = "stop";
    int64_t log_every = 50;
    std::string weights;
    int64_t seed = 1;
    int64_t threads = 0;
    bool deterministic = false;
    std::string device = "cpu";
  } train;

  struct Compare {
    double seconds = 18;
    double layer_seconds = 12;
    int64_t layer_width = 1024;
  } compare;

  /// A variant that `compare` trains beside the others: the recipe with a few keys set otherwise.
  struct Twin {
    std::string name;
    std::vector<Setting> settings;
  };
  std::vector<Twin> twins;

  /// Where each key that was given got its value, for error messages.
  std::map<std::string, std::string> origins;
};

/// A pointer to a key's value inside a recipe.
using Field = std::variant<bool*, int64_t*, double*, std::string*>;

/// One key. Its type and default are those of its field in a fresh Recipe.
struct QUATRAIN_API Key {
  std::string table;
  std::string name;
  Field (*field)(Recipe&);
  std::string description;
  std::vector<std::string> values = {};          ///< the allowed values; empty: any
  std::optional<double> minimum = std::nullopt;  ///< smallest allowed
  std::optional<double> maximum = std::nullopt;  ///< largest allowed

  std::string full_name() const { return table + "." + name; }
};

/// Every key, in the order of the documentation.
QUATRAIN_API const std::vector<Key>& recipe_keys();

/// Reads a recipe from TOML text, applies settings over it and checks it wholly. `origin` names the text in
/// messages. Twins are checked too. Throws RecipeError.
QUATRAIN_API Recipe parse_recipe(std::string_view text, const std::string& origin, const std::string& name,
                                 const std::vector<Setting>& settings = {});
/// The text of a recipe's file, which is a file indeed and not larger than 1 MiB. Throws RecipeError.
QUATRAIN_API std::string read_recipe_text(const std::string& path);
/// The same from a file; the recipe's name is the file's.
QUATRAIN_API Recipe read_recipe(const std::string& path, const std::vector<Setting>& settings = {});

/// Gives one key its value. An unknown key's error names the nearest; a bad value's names the rule.
QUATRAIN_API void apply(Recipe& recipe, const Setting& setting);

/// The rules that join several keys, such as: n times heads divides the width. Reading does this; so must
/// whoever sets fields by hand.
QUATRAIN_API void check(const Recipe& recipe);

/// The twin of that name; an unknown name is a RecipeError that names the nearest.
QUATRAIN_API const Recipe::Twin& find_twin(const Recipe& recipe, std::string_view name);
/// A twin as a recipe of its own, called as the twin, checked, without further twins.
QUATRAIN_API Recipe twin_recipe(const Recipe& recipe, const Recipe::Twin& twin);

/// The effective recipe as TOML: every key with its value, then the twins. Reading it gives the same recipe.
QUATRAIN_API std::string to_toml(const Recipe& recipe);

/// The keys whose values differ between two recipes.
QUATRAIN_API std::vector<std::string> differing_keys(const Recipe& a, const Recipe& b);

/// docs/recipes.md: every key with its type, default, values and description.
QUATRAIN_API std::string recipe_document();

}  // namespace quatrain::train
