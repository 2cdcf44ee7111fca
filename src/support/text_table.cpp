#include "support/text_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace quatrain {

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto place = static_cast<int64_t>(digits.size()) - 3; place > 0; place -= 3)
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
  std::vector<size_t> widths(columns_, 0);
  for (const auto& row : rows_)
    for (size_t i = 0; i < std::min(columns_, row.size()); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string space(i < columns_ ? widths[i] - row[i].size() : 0, ' ');
      line += (i ? "  " : "") + (i == 0 ? row[i] + space : space + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace quatrain
