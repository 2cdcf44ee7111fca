#pragma once

#include "nn/check.h"
#include "support/enum_names.h"

/// Options by their names; an unknown one is refused as bad arguments are.
namespace quatrain::nn {

template <class Enum, size_t N>
const char* name_in(const EnumNames<Enum, N>& names, Enum value) {
  if (const char* text = find_name(names, value)) return text;
  refuse("name: no name for the value ", static_cast<int>(value));
}

/// `what`: the option's name in the error.
template <class Enum, size_t N>
Enum parse_in(const EnumNames<Enum, N>& names, const char* what, std::string_view text) {
  if (const Enum* value = find_value(names, text)) return *value;
  refuse(what, " must be one of ", list_names(names), "; got '", text, "'");
}

}  // namespace quatrain::nn
