#include "algebra/file.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <stdexcept>

#include "algebra/signature.h"
#include "quatrain/algebra.h"
#include "support/json.h"
#include "support/nearest_name.h"
#include "support/toml.h"

namespace quatrain::algebra {
namespace {

using nlohmann::json;

// Reads one description; every complaint begins with where it stands.
class Reader {
 public:
  explicit Reader(const std::string& where) : where_(where) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw std::invalid_argument(where_ + ": " + what);
  }

  json parse(std::string_view text, Notation notation) const {
    constexpr int kDeepest = 3;  // {table: [[i, b, a, value]]}
    try {
      if (notation == Notation::json) return parse_json<json>(text, kDeepest);
      std::ostringstream converted;
      converted << toml::json_formatter{parse_toml(text)};
      return parse_json<json>(converted.view(), kDeepest);
    } catch (const TextError& error) {
      throw std::invalid_argument(where_ + ":" + std::to_string(error.line()) + ": " + error.what());
    }
  }

  void check_keys(const json& root) const {
    static const std::vector<std::string> known = {"name", "n", "table", "U", "V", "W", "conjugation"};
    if (!root.is_object()) refuse("must hold the keys name, n and table");
    for (const auto& [key, value] : root.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        refuse("unknown key " + quote(key) + did_you_mean(key, known));
      }
    }
    for (const char* key : {"name", "n", "table"}) {
      if (!root.contains(key)) refuse("the key " + std::string(key) + " is missing");
    }
    if (!root["name"].is_string()) refuse("name must be a string");
    if (!root["n"].is_number_integer() || root["n"] < 1 || root["n"] > kMaxDimension) {
      refuse("n must be a whole number from 1 to " + std::to_string(kMaxDimension) + ", got " +
             shorten(root["n"].dump()));
    }
  }

  std::vector<double> table(const json& entries, int n) const {
    if (!entries.is_array()) refuse("table must be a list of entries [i, b, a, value]");
    std::vector<double> values(static_cast<size_t>(n) * n * n);
    std::set<size_t> seen;
    for (const auto& entry : entries) {
      const bool shaped =
          entry.is_array() && entry.size() == 4 &&
          std::all_of(entry.begin(), entry.end(), [](const json& x) { return x.is_number(); });
      auto is_component = [n](const json& x) { return x.is_number_integer() && x >= 0 && x < n; };
      if (!shaped || !std::all_of(entry.begin(), entry.begin() + 3, is_component)) {
        refuse("an entry of table must be [i, b, a, value] with i, b, a from 0 to " + std::to_string(n - 1) +
               ", got " + shorten(entry.dump()));
      }
      const size_t i = entry[0], b = entry[1], a = entry[2], at = (i * n + a) * n + b;
      if (!seen.insert(at).second)
        refuse("table has two entries for the same i, b, a: " + shorten(entry.dump()));
      values[at] = entry[3];
    }
    return values;
  }

  std::vector<double> numbers(const json& list, const std::string& what) const {
    std::vector<double> values;
    if (!list.is_array()) refuse(what + " must be a list of numbers");
    for (const auto& value : list) {
      if (!value.is_number()) refuse(what + " must be a list of numbers, got " + shorten(value.dump()));
      values.push_back(value);
    }
    return values;
  }

  std::optional<Factors> factors(const json& root, int n) const {
    const auto given = std::count_if(root.items().begin(), root.items().end(), [](const auto& item) {
      return item.key() == "U" || item.key() == "V" || item.key() == "W";
    });
    if (given == 0) return std::nullopt;
    if (given != 3) refuse("factors need all of U, V and W");
    Factors result;
    result.n = n;
    for (auto [key, values] : {std::pair{"U", &result.U}, {"V", &result.V}, {"W", &result.W}}) {
      const json& rows = root[key];
      if (!rows.is_array() || rows.size() != static_cast<size_t>(n)) {
        refuse(std::string(key) + " must have n = " + std::to_string(n) + " rows");
      }
      for (const auto& row : rows) {
        const auto columns = numbers(row, "a row of " + std::string(key));
        if (result.rank == 0) result.rank = static_cast<int>(columns.size());
        if (columns.empty() || columns.size() != static_cast<size_t>(result.rank)) {
          refuse("all rows of U, V and W must have the same length, their rank");
        }
        values->insert(values->end(), columns.begin(), columns.end());
      }
    }
    return result;
  }

 private:
  const std::string& where_;
};

}  // namespace

Described describe(std::string_view text, Notation notation, const std::string& where,
                   const std::string& name) {
  const Reader reader(where);
  json root = reader.parse(text, notation);
  if (!name.empty() && root.is_object()) root["name"] = name;
  reader.check_keys(root);
  const int n = root["n"];
  Described result{root["name"], n, reader.table(root["table"], n), reader.factors(root, n), {}};
  if (root.contains("conjugation")) {
    result.conjugation = reader.numbers(root["conjugation"], "conjugation");
    if (result.conjugation.empty()) reader.refuse("conjugation must have n signs");
  }
  return result;
}

const Algebra& add_from_file(const std::string& path) {
  const std::string where = "add_from_file: " + path;
  const Reader reader(where);
  const bool is_toml = path.ends_with(".toml");
  if (!is_toml && !path.ends_with(".json")) reader.refuse("the name must end in .json or .toml");
  constexpr size_t kLargest = 64 << 20;  // a full table of 64 components with factors has some 20 MB
  std::string text;
  try {
    text = read_file(path, kLargest);
  } catch (const std::invalid_argument& error) {
    reader.refuse(std::string("cannot be read: ") + error.what());
  }
  auto [name, n, table, factors, conjugation] =
      describe(text, is_toml ? Notation::toml : Notation::json, where);
  try {
    return add(std::move(name), n, std::move(table), std::move(factors), std::move(conjugation));
  } catch (const std::invalid_argument& error) {
    reader.refuse(error.what());
  }
}

}  // namespace quatrain::algebra
