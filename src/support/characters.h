#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/text.h"

/// Text as Python's str sees it.
namespace quatrain {

/// A character and the bytes that it was written with.
struct Character {
  uint32_t code;
  std::string_view bytes;
};

/// The characters of a text. `what` names it in the error where it is not UTF-8.
inline std::vector<Character> characters(std::string_view text, const char* what) {
  if (const std::string problem = utf8_problem(text); !problem.empty())
    throw std::invalid_argument(std::string(what) + ": " + problem);
  std::vector<Character> all;
  all.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
    for (size_t j = 1; j < length; ++j) code = code << 6 | (static_cast<unsigned char>(text[i + j]) & 0x3Fu);
    all.push_back({code, text.substr(i, length)});
    i += length;
  }
  return all;
}

/// What str.split() and str.strip() take for white space.
inline bool is_white_space(uint32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

}  // namespace quatrain
