#include "support/shell_word.h"

#include <algorithm>
#include <string_view>

namespace quatrain {

std::string shell_word(const std::filesystem::path& path) {
  constexpr std::string_view kPlain = "./_-+:@%,";
  std::string text = path.string();
  if (text.starts_with('-')) text = "./" + text;  // or it would be an option
  const auto plain = [&](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c >= 0x80 /* letters of UTF-8 */ || kPlain.find(static_cast<char>(c)) != kPlain.npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

}  // namespace quatrain
