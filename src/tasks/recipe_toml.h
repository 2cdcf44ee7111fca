#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>

#include "quatrain/train/keys.h"
#include "support/toml.h"

namespace quatrain::tasks {

/// A number's shortest digits that are no other number's; a whole one without an exponent.
inline std::string number_text(double value) {
  std::array<char, 32> digits{};
  char *begin = digits.data(), *end = begin + digits.size();
  constexpr double kWhole = 1e15;
  const bool whole = value == std::trunc(value) && std::abs(value) < kWhole;
  end = whole ? std::to_chars(begin, end, static_cast<int64_t>(value)).ptr
              : std::to_chars(begin, end, value).ptr;
  return {begin, end};
}

/// A value as it stands in TOML.
inline std::string toml_text(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& value) { out << value; });
  return out.str();
}

inline std::string toml_text(const train::Value& value) {
  return std::visit([](const auto& one) { return toml_text(toml::value(one)); }, value);
}

}  // namespace quatrain::tasks
