#pragma once

#include <map>
#include <string>

#include "quatrain/tasks/about.h"
#include "quatrain/tasks/recipe.h"
#include "support/text_table.h"

/// How the figures of a kind stand in tables.
namespace quatrain::cli {

/// A figure's value as its format says: "93.1%", "0.1234", "1.2e-07", "4,000".
std::string shown(const tasks::Figure& figure, double value, int digits = 2);
/// The same of the figures of a split or of a part of it ("/attractors=2"); "" where it has no such figure.
std::string shown(const tasks::Figure& figure, const std::map<std::string, double>& figures,
                  const std::string& group = "");

/// Rows for the dev set's figure that selects and for the test set's figures, where a run has them.
void add_figures(Table& table, const std::map<std::string, double>& dev,
                 const std::map<std::string, double>& test, const tasks::Recipe& recipe);

/// What stands beside a figure, in the figure's own format.
inline tasks::Figure beside(const tasks::Figure& figure) {
  return {figure.beside, figure.beside, figure.format};
}

}  // namespace quatrain::cli
