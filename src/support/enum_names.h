#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

/// Names of an enumeration's values, in one table that serves both directions. The caller decides what an
/// unknown name throws.
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

}  // namespace quatrain
