#pragma once

// In places toml++ assumes something that its input may violate, which is undefined behaviour in a build
// without asserts. Without these assumptions it continues to a proper error.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(condition) static_cast<void>(0)
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <string_view>

#include "support/text.h"

namespace quatrain {

/// Parses TOML of any origin; throws TextError, with the line.
inline toml::table parse_toml(std::string_view text) {
  const std::string plain = plain_toml(text);
  try {
    return toml::parse(plain);
  } catch (const toml::parse_error& error) {
    throw TextError(error.source().begin.line, std::string(error.description()));
  }
}

}  // namespace quatrain
