#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/nn/algebra_spec.h"

/// Keys of recipes, each written once and bound to the option that it sets.
namespace quatrain::train {

/// What a recipe can write for a key.
using Value = std::variant<bool, int64_t, double, std::string>;

/// One key, bound to an option of some object, which must outlive it. Its type is that of the value it has.
struct QUATRAIN_API Key {
  std::string table;
  std::string name;
  const char* description = "";
  std::function<Value()> get;
  /// Takes a value of the key's type within its bounds; a std::invalid_argument says what else is wrong.
  std::function<void(const Value&)> set;
  std::vector<std::string> values = {};  ///< the allowed values; empty: any
  /// Smallest and largest allowed.
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool free = false;      ///< a resumed run may have another value, and what a trained one answers too
  bool answers = false;   ///< of what a trained run answers alone: a resumed run's figures are compared by it
  bool predicts = false;  ///< it says what `predict` writes, and changes no figure
  bool path = false;      ///< it names a file or a folder, which a run that is stored names from the root on
  bool augments = false;  ///< it changes what training sees, and nothing of what the model makes of an input

  /// Where the key says something, in words and as a question to the options; empty: always.
  std::string needs = {};
  std::function<bool()> used = {};

  std::string full_name() const { return table + "." + name; }
  /// These say where another value may be given than the one that a run was trained with.
  Key& may_change() { return free = true, *this; }
  Key& may_change_in_answers() { return answers = true, *this; }
  Key& only_predicts() { return predicts = free = true, *this; }
  Key& is_path() { return path = true, *this; }
  Key& only_augments() { return augments = true, *this; }
  /// `--set` of a key that would do nothing is an error that says what it needs ("train.optimizer = sgd").
  Key& only(std::string where, std::function<bool()> is) {
    return needs = std::move(where), used = std::move(is), *this;
  }
};

/// A table of a recipe, with what it is about.
struct QUATRAIN_API KeyTable {
  std::string name;
  const char* description = "";
};

/// Collects keys, table by table: an object describes its options by adding a key for each.
class QUATRAIN_API Keys {
 public:
  /// The table that the next keys are in; a table may come again.
  void table(const std::string& name, const char* description);

  /// true or false.
  Key& flag(const char* name, bool& option, const char* description);
  /// A whole number or any number. Bounds are required: without them a value would reach a layer unchecked.
  template <class Number>
  requires(std::same_as<Number, int64_t> || std::same_as<Number, uint64_t> ||
           std::same_as<Number, double>) Key& number(const char* name, Number& option, double minimum,
                                                     double maximum, const char* description) {
    using Written = std::conditional_t<std::same_as<Number, double>, double, int64_t>;
    Key& key = add(
        name, [&option] { return Value(static_cast<Written>(option)); },
        [&option](const Value& value) { option = static_cast<Number>(std::get<Written>(value)); },
        description);
    key.minimum = minimum;
    key.maximum = maximum;
    return key;
  }
  /// One line of text, or one of the values.
  Key& text(const char* name, std::string& option, const char* description,
            std::vector<std::string> values = {});
  Key& path(const char* name, std::filesystem::path& option, const char* description);
  /// An enumerator by its name.
  template <class Enum>
  Key& choice(const char* name_of_key, Enum& option, std::initializer_list<Enum> all,
              const char* description) {
    const std::vector<Enum> known = all;
    Key& key = add(
        name_of_key, [&option] { return Value(std::string(name(option))); },
        [&option, known](const Value& value) {
          for (const Enum one : known)
            if (std::get<std::string>(value) == name(one)) option = one;
        },
        description);
    for (const Enum one : known) key.values.emplace_back(name(one));
    return key;
  }
  /// An algebra in the notation of layers.
  Key& algebra(const char* name, nn::AlgebraSpec& option, const char* description);
  /// Any other option, by how it is read and written.
  Key& add(const char* name, std::function<Value()> get, std::function<void(const Value&)> set,
           const char* description);

  const std::vector<KeyTable>& tables() const { return tables_; }
  /// All keys, table by table.
  std::vector<Key> take();

 private:
  std::vector<KeyTable> tables_;
  std::vector<Key> keys_;
  std::string table_;
};

struct TrainerOptions;
/// The trainer's own keys, into the table that was named last.
QUATRAIN_API void describe(TrainerOptions& options, Keys& keys);

}  // namespace quatrain::train
