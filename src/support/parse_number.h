#pragma once

#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace quatrain {

/// The sign of the decimal exponent of a number that is written out: -1 below 1, else 1.
inline int side_of_one(std::string_view number) {
  const size_t mark = number.find_first_of("eE"), point = number.substr(0, mark).find('.'),
               first = number.find_first_of("123456789"),
               ones = point != number.npos  ? point
                      : mark != number.npos ? mark
                                            : number.size();
  const auto places = static_cast<int64_t>(ones) - static_cast<int64_t>(first);  // above 0 from 1 on
  int64_t exponent = 0;
  if (mark != number.npos) {
    std::string_view digits = number.substr(mark + 1);
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) digits.remove_prefix(1);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), exponent).ec != std::errc())
      exponent = std::numeric_limits<int32_t>::max();  // more than any text has places
    if (negative) exponent = -exponent;
  }
  return places + exponent > 0 ? 1 : -1;
}

/// A whole text as a floating-point number, in every locale: "1.5", "-2e-3", "inf". What is too small for the
/// type is 0 and what is too large infinite, as where such numbers are computed; what is no number is none.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (stop != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {  // which does not say on which side
    const T size = side_of_one(text) < 0 ? T(0) : std::numeric_limits<T>::infinity();
    return text.starts_with('-') ? -size : size;
  }
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

}  // namespace quatrain
