#pragma once

// toml++ assumes in places what its input does not keep, and an assumption that fails is undefined behaviour
// in a build without asserts. It goes on to a proper error where nothing is assumed.
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
