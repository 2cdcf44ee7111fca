#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "nn/check.h"

/// Names of an enumeration's values, in one table that serves both directions.
namespace quatrain::nn {

template <class Enum, size_t N>
using EnumNames = std::array<std::pair<Enum, const char*>, N>;

template <class Enum, size_t N>
const char* name_in(const EnumNames<Enum, N>& names, Enum value) {
  for (const auto& [known, text] : names)
    if (known == value) return text;
  refuse("name: no name for the value ", static_cast<int>(value));
}

/// `what`: the option's name in the error.
template <class Enum, size_t N>
Enum parse_in(const EnumNames<Enum, N>& names, const char* what, std::string_view text) {
  std::string known_names;
  for (const auto& [value, known] : names) {
    if (text == known) return value;
    known_names += known_names.empty() ? known : std::string(", ") + known;
  }
  refuse(what, " must be one of ", known_names, "; got '", text, "'");
}

}  // namespace quatrain::nn
