#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/train/keys.h"
#include "quatrain/train/options.h"

/// Recipes: everything that a run is made from, as one TOML file.
///
/// A key is written once, where its option is described: by the kind of task for its own tables, by the
/// trainer for [train]. Reading, defaults, `--set`, the effective recipe that is stored with a run, and
/// docs/recipes.md are all derived from it.
namespace quatrain::tasks {

struct About;
struct Figure;
class Kind;
struct Recipe;

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

/// What a kind's own tables of a recipe set. Its initial values are their defaults.
class QUATRAIN_API Options {
 public:
  virtual ~Options() = default;
  virtual std::unique_ptr<Options> clone() const = 0;
  /// Adds a key for each option. A twin's own keys are those of [model]; [train] may get keys too.
  virtual void describe(train::Keys& keys) = 0;
  /// The rules that join several keys; see Recipe::refuse.
  virtual void check(const Recipe& recipe) const;
  /// The figure of the dev set that selects the best checkpoint; empty: the first of the kind's.
  virtual std::string selecting() const { return {}; }
  /// The figure of the test set by whose differences twins are judged, where a run has counts of it; empty:
  /// the first of the kind's.
  virtual std::string judging() const { return {}; }
  /// False where a run has no answer to any line of `predict`.
  virtual bool answers_lines() const { return true; }
};

/// The options of a kind, copied with their recipe.
class QUATRAIN_API OwnOptions {
 public:
  explicit OwnOptions(std::unique_ptr<Options> options) : options_(std::move(options)) {}
  OwnOptions(const OwnOptions& other) : options_(other.options_->clone()) {}
  OwnOptions& operator=(const OwnOptions& other) {
    options_ = other.options_->clone();
    return *this;
  }
  OwnOptions(OwnOptions&&) = default;
  OwnOptions& operator=(OwnOptions&&) = default;
  ~OwnOptions() = default;
  Options& operator*() const { return *options_; }
  Options* operator->() const { return options_.get(); }

 private:
  std::unique_ptr<Options> options_;
};

/// A whole recipe. The initial values are the defaults; keys_of() describes each.
struct QUATRAIN_API Recipe {
  /// Of the first kind, the default of a recipe that names none.
  Recipe();
  explicit Recipe(const Kind& kind);

  std::string name = "recipe";  ///< the file's name without its ending
  std::string description;
  const Kind* kind;
  OwnOptions options;           ///< the kind's own tables
  train::TrainerOptions train;  ///< [train], with what follows
  int64_t batch = 32;           ///< examples in a batch
  std::string weights;          ///< a run or a file of weights to start from
  int64_t threads = 0;          ///< 0: torch's number

  /// What `quatrain compare` tries and measures.
  struct Compare {
    std::string rates;  ///< see rates_of(); empty: the recipe's rate
    int64_t rate_seeds = 2;
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

  /// What the recipe's kind is called and reports.
  const About& about() const;
  /// The figure of the dev set that selects the best checkpoint.
  const Figure& selecting() const;
  /// The figure of the test set by whose differences twins are judged; see Options::judging.
  const Figure& judging() const;
  /// The options of the recipe's kind, as the type that this kind gave them.
  template <class Own>
  Own& own() const {
    return dynamic_cast<Own&>(*options);
  }
  /// Throws a RecipeError: "PLACE: KEY RULE".
  [[noreturn]] void refuse(const std::string& key, const std::string& rule) const;
};

/// Every key of a recipe, bound to it, in the order of the documentation.
QUATRAIN_API std::vector<train::Key> keys_of(Recipe& recipe);

/// Reads a recipe from TOML text, applies settings over it and checks it wholly. `origin` names the text in
/// messages. Twins are checked too. `choose` may make it what is used of it (one twin, fewer twins) before
/// anything is checked. Throws RecipeError.
QUATRAIN_API Recipe parse_recipe(std::string_view text, const std::string& origin, const std::string& name,
                                 const std::vector<Setting>& settings = {},
                                 const std::function<void(Recipe&)>& choose = {});
/// The text of a recipe's file, which must be a regular file of at most 1 MiB. Throws RecipeError.
QUATRAIN_API std::string read_recipe_text(const std::string& path);
/// What the recipe of a file is called: like the file, or like the run or folder whose recipe.toml it is.
QUATRAIN_API std::string recipe_name(const std::filesystem::path& path);
/// The same from a file, called as recipe_name says.
QUATRAIN_API Recipe read_recipe(const std::string& path, const std::vector<Setting>& settings = {});

/// Gives one key its value. An unknown key's error names the nearest, or the kind that has it; a bad value's
/// names the rule.
QUATRAIN_API void apply(Recipe& recipe, const Setting& setting);

/// A key's value as text ("model.algebra": "quaternion"); none where the recipe's kind has no such key.
QUATRAIN_API std::optional<std::string> find_value(const Recipe& recipe, const std::string& key);

/// The rules that join several keys, such as: n times heads divides the width. Reading does this; so must
/// whoever sets options by hand.
QUATRAIN_API void check(const Recipe& recipe);

/// The twin of that name; an unknown name is a RecipeError that names the nearest.
QUATRAIN_API const Recipe::Twin& find_twin(const Recipe& recipe, std::string_view name);
/// A twin as a recipe of its own, called as the twin, checked, without further twins. Errors name it.
QUATRAIN_API Recipe twin_recipe(const Recipe& recipe, const Recipe::Twin& twin);

/// The learning rates of `compare.rates`, as they are written; none where it is empty. Throws a RecipeError
/// where it is not a list of different rates.
QUATRAIN_API std::vector<std::string> rates_of(const Recipe& recipe);

/// The effective recipe as TOML: every key with its value, then the twins. Reading it gives the same recipe.
QUATRAIN_API std::string to_toml(const Recipe& recipe);

/// The keys whose values differ between two recipes, of all or of those that `matters` takes; `task.kind`
/// alone where their kinds differ.
QUATRAIN_API std::vector<std::string> differing_keys(
    const Recipe& a, const Recipe& b, const std::function<bool(const train::Key&)>& matters = {});

/// docs/recipes.md: every key with its type, default, values and description.
QUATRAIN_API std::string recipe_document();

}  // namespace quatrain::tasks
