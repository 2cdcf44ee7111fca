#include "algebra/signature.h"

#include <cctype>
#include <charconv>
#include <stdexcept>

#include "support/text.h"

namespace quatrain::algebra {
namespace {

bool is_blank(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

Call parse_call(std::string_view text) {
  const std::string_view whole = trim(text);
  constexpr size_t kLongest = 100;
  if (whole.size() > kLongest) {
    throw std::invalid_argument("algebra: a name has at most " + std::to_string(kLongest) +
                                " characters, got " + quote(whole));
  }
  const size_t open = whole.find('(');
  if (open == std::string_view::npos && whole.find(')') == std::string_view::npos) {
    return {std::string(whole), std::nullopt};
  }
  if (open == std::string_view::npos || whole.back() != ')') {
    throw std::invalid_argument("algebra: the parentheses of \"" + std::string(whole) +
                                "\" do not match; a name is written like quaternion or clifford(2,1)");
  }
  return {std::string(trim(whole.substr(0, open))),
          std::string(trim(whole.substr(open + 1, whole.size() - open - 2)))};
}

std::optional<int> parse_int(std::string_view text) {
  text = trim(text);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::vector<int>> parse_ints(std::string_view text) {
  std::vector<int> values;
  while (true) {
    const size_t comma = text.find(',');
    const auto value = parse_int(text.substr(0, comma));
    if (!value) return std::nullopt;
    values.push_back(*value);
    if (comma == std::string_view::npos) return values;
    text.remove_prefix(comma + 1);
  }
}

std::string canonical_name(std::string_view text) {
  const Call call = parse_call(text);
  if (!call.inner) return call.head;
  std::string name = call.head + "(";
  for (char c : *call.inner) {
    if (!is_blank(c)) name += c;
  }
  return name + ")";
}

bool is_identifier(std::string_view text) {
  if (text.empty() || !std::isalpha(static_cast<unsigned char>(text.front()))) return false;
  for (char c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

}  // namespace quatrain::algebra
