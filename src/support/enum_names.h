#pragma once

#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

/// Names of an enumeration's values, in one table that serves both directions.
namespace quatrain {

template <class Enum, size_t N>
using EnumNames = std::array<std::pair<Enum, const char*>, N>;

/// Null where the value has no name.
template <class Enum, size_t N>
const char* find_name(const EnumNames<Enum, N>& names, Enum value) {
  for (const auto& [known, text] : names)
    if (known == value) return text;
  return nullptr;
}

/// Null where the name is unknown.
template <class Enum, size_t N>
const Enum* find_value(const EnumNames<Enum, N>& names, std::string_view text) {
  for (const auto& [value, known] : names)
    if (text == known) return &value;
  return nullptr;
}

/// "a, b, c".
template <class Enum, size_t N>
std::string list_names(const EnumNames<Enum, N>& names) {
  std::string list;
  for (const auto& [value, known] : names) list += (list.empty() ? "" : ", ") + std::string(known);
  return list;
}

/// The name of a value. One that has none was cast from a number: std::invalid_argument.
template <class Enum, size_t N>
const char* name_of(const EnumNames<Enum, N>& names, Enum value) {
  if (const char* text = find_name(names, value)) return text;
  throw std::invalid_argument("there is no name for the value " + std::to_string(static_cast<int>(value)) +
                              "; names are " + list_names(names));
}

/// The value of a name. An unknown one is a std::invalid_argument: "WHAT must be one of a, b; got 'c'".
template <class Enum, size_t N>
Enum parse_name(const EnumNames<Enum, N>& names, std::string_view what, std::string_view text) {
  if (const Enum* value = find_value(names, text)) return *value;
  throw std::invalid_argument(std::string(what) + " must be one of " + list_names(names) + "; got '" +
                              std::string(text) + "'");
}

}  // namespace quatrain
