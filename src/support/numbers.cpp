#include "support/numbers.h"

#include <array>
#include <charconv>
#include <cmath>

namespace quatrain {
namespace {

std::string written(double number, std::chars_format format, int digits) {
  std::array<char, 400> text;  // the largest double has 309 digits before the point
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, format, digits).ptr;
  return {text.data(), end};
}

std::string three_digits(double value) {
  return fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

}  // namespace

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto place = static_cast<int64_t>(digits.size()) - 3; place > (number < 0 ? 1 : 0); place -= 3)
    digits.insert(static_cast<size_t>(place), 1, ',');
  return digits;
}

std::string counted(int64_t number, const std::string& what) {
  return grouped(number) + " " + what + (number == 1 ? "" : "s");
}

std::string fixed(double number, int digits) {
  return written(number, std::chars_format::fixed, digits);
}

std::string short_number(double value) {
  const bool plain = value == 0 || (value >= 1e-3 && value < 1e4);
  return plain ? fixed(value, 3) : written(value, std::chars_format::scientific, 1);
}

std::string percent(double share, int digits) {
  return fixed(100 * share, digits) + "%";
}

std::string bytes(double size) {
  if (size < 1e3) return fixed(size, 0) + " B";
  if (size < 1e6) return three_digits(size / 1e3) + " kB";
  if (size < 1e9) return three_digits(size / 1e6) + " MB";
  return three_digits(size / 1e9) + " GB";
}

std::string seconds(double time) {
  if (time < 1e-3) return three_digits(time * 1e6) + " us";
  if (time < 1) return three_digits(time * 1e3) + " ms";
  return three_digits(time) + " s";
}

std::string ratio(double value, double reference) {
  return reference > 0 && std::isfinite(value) ? fixed(value / reference, 2) + "x" : "-";
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  const int64_t whole = std::llround(std::max(0.0, seconds)), minutes = whole / 60;
  const auto two = [](int64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  if (whole < 60) return std::to_string(whole) + "s";
  if (minutes < 60) return std::to_string(minutes) + "m" + two(whole % 60) + "s";
  return std::to_string(minutes / 60) + "h" + two(minutes % 60) + "m";
}

}  // namespace quatrain
