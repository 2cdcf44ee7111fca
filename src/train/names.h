#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace quatrain::train {

/// The name of an enumerator in a table of (name, value) pairs.
template <typename Table, typename Value>
const char* name_of(const Table& table, Value value) {
  for (const auto& [name, known] : table)
    if (known == value) return name;
  return "?";
}

/// The inverse; the error lists the known names.
template <typename Table>
auto parse_name(const Table& table, std::string_view name, const char* what) {
  std::string known;
  for (const auto& [text, value] : table) {
    if (name == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  throw std::invalid_argument(std::string(what) + " '" + std::string(name) + "' is unknown: one of " + known);
}

}  // namespace quatrain::train
