#include "cli/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace quatrain::cli {
namespace {

// Characters, not bytes; colours take no room.
size_t width_of(const std::string& cell) {
  size_t width = 0;
  bool colour = false;
  for (const char c : cell) {
    if (c == '\033')
      colour = true;
    else if (colour)
      colour = c != 'm';
    else
      width += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }
  return width;
}

// Three significant digits.
std::string short_number(double value) {
  return fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

}  // namespace

const char* version() {
  return QUATRAIN_VERSION;
}

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto place = static_cast<int64_t>(digits.size()) - 3; place > (number < 0 ? 1 : 0); place -= 3)
    digits.insert(static_cast<size_t>(place), ",");
  return digits;
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

void Table::row(std::vector<std::string> cells) {
  rows_.push_back(std::move(cells));
}

void Table::rule() {
  rows_.emplace_back();
}

std::string Table::text() const {
  std::vector<size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  size_t total = widths.empty() ? 0 : 2 * (widths.size() - 1);
  for (const size_t width : widths) total += width;
  std::string text;
  for (const auto& row : rows_) {
    std::string line = row.empty() ? std::string(total, '-') : "";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width_of(row[i]), ' ');
      const bool left = alignment_[std::min(i, alignment_.size() - 1)] == 'l';
      line += (i ? "  " : "") + (left ? row[i] + space : space + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace quatrain::cli
