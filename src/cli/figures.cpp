#include "cli/figures.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "cli/console.h"

namespace quatrain::cli {

std::string shown(const tasks::Figure& figure, double value, int digits) {
  using Format = tasks::Figure::Format;
  if (figure.format == Format::share) return percent(value, digits);
  if (figure.format == Format::count) return grouped(std::llround(value));
  constexpr double kSmall = 1e-3;
  if (value == 0 || std::abs(value) >= kSmall || !std::isfinite(value)) return fixed(value, 4);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2e", value);
  return text.data();
}

std::string shown(const tasks::Figure& figure, const std::map<std::string, double>& figures,
                  const std::string& group) {
  const auto found = figures.find(figure.name + group);
  return found == figures.end() ? "" : shown(figure, found->second);
}

void add_figures(Table& table, const std::map<std::string, double>& dev,
                 const std::map<std::string, double>& test, const tasks::Recipe& recipe) {
  const tasks::Figure& selecting = recipe.selecting();
  if (dev.contains(selecting.name)) table.row({"dev " + selecting.title, shown(selecting, dev)});
  for (const auto& figure : recipe.about().figures) {
    if (!test.contains(figure.name) || (figure.detail && figure.name != selecting.name)) continue;
    table.row({"test " + figure.title, shown(figure, test)});
    if (test.contains(figure.beside)) table.row({"test " + figure.beside, shown(beside(figure), test)});
  }
}

}  // namespace quatrain::cli
