#include "support/text_table.h"

#include <algorithm>
#include <cstdio>

namespace quatrain {
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

}  // namespace

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto place = static_cast<int64_t>(digits.size()) - 3; place > (number < 0 ? 1 : 0); place -= 3)
    digits.insert(static_cast<size_t>(place), ",");
  return digits;
}

std::string short_number(double value) {
  char text[32];
  const bool plain = value == 0 || (value >= 1e-3 && value < 1e4);
  std::snprintf(text, sizeof text, plain ? "%.3f" : "%.1e", value);
  return text;
}

std::string layer_name(const std::string& name) {
  return name.empty() ? "(the module)" : name;
}

std::string TextTable::text() const {
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

}  // namespace quatrain
