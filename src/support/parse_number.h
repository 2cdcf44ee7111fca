#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace quatrain {

/// A whole text as a floating-point number, in every locale: "1.5", "-2e-3", "inf". What is too small for the
/// type is 0 and what is too large infinite, as where such numbers are computed; what is no number is none.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  const char* const end = text.data() + text.size();
  T value = 0;
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range) {  // which does not say on which side
    long double wide = 0;
    const auto [wide_stop, wide_error] = std::from_chars(text.data(), end, wide);
    stop = wide_stop, error = wide_error;
    value = static_cast<T>(wide);
  }
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

}  // namespace quatrain
