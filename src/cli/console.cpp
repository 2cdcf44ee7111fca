#include "cli/console.h"

#include <fmt/format.h>

#include <cmath>

namespace quatrain::cli {
namespace {

// Three significant digits.
std::string short_number(double value) {
  return fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

}  // namespace

const char* version() {
  return QUATRAIN_VERSION;
}

std::string counted(int64_t number, const std::string& what) {
  return grouped(number) + " " + what + (number == 1 ? "" : "s");
}

std::string fixed(double number, int digits) {
  return fmt::format("{:.{}f}", number, digits);
}

std::string percent(double share, int digits) {
  return fixed(100 * share, digits) + "%";
}

std::string bytes(double size) {
  if (size < 1e3) return fmt::format("{:.0f} B", size);
  if (size < 1e6) return short_number(size / 1e3) + " kB";
  if (size < 1e9) return short_number(size / 1e6) + " MB";
  return short_number(size / 1e9) + " GB";
}

std::string seconds(double time) {
  if (time < 1e-3) return short_number(time * 1e6) + " us";
  if (time < 1) return short_number(time * 1e3) + " ms";
  return short_number(time) + " s";
}

std::string ratio(double value, double reference) {
  return reference > 0 && std::isfinite(value) ? fixed(value / reference, 2) + "x" : "-";
}

std::string printable(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    if (c == '\t' || c == '\n')
      shown += c == '\t' ? "\\t" : "\\n";
    else if (static_cast<unsigned char>(c) < ' ' || c == 0x7F)
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      shown += c;
  }
  return shown;
}

std::string painted(const std::string& text, const char* colour) {
  return std::string("\033[") + colour + "m" + text + "\033[0m";
}

}  // namespace quatrain::cli
