#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "support/enum_names.h"

/// Options by their names.
namespace quatrain::train {

template <class Enum, size_t N>
const char* name_of(const EnumNames<Enum, N>& names, Enum value) {
  const char* text = find_name(names, value);
  return text ? text : "?";
}

/// The inverse; the error lists the known names.
template <class Enum, size_t N>
Enum parse_name(const EnumNames<Enum, N>& names, std::string_view text, const char* what) {
  if (const Enum* value = find_value(names, text)) return *value;
  throw std::invalid_argument(std::string(what) + " '" + std::string(text) + "' is unknown: one of " +
                              list_names(names));
}

}  // namespace quatrain::train
