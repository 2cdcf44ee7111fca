#pragma once

#include <string>
#include <vector>

#include "quatrain/api.h"

/// Tables of text, for reports and terminals.
namespace quatrain {

/// The name, or what stands for the module itself.
QUATRAIN_API std::string layer_name(const std::string& name);

/// The text in a colour of the terminal (an SGR code: 32 green, 31 red).
QUATRAIN_API std::string painted(const std::string& text, const char* colour);

/// Rows of cells in aligned columns.
class QUATRAIN_API Table {
 public:
  /// One letter a column, l (to the left) or r (to the right); the last one holds for all that follow.
  explicit Table(std::string alignment = "lr") : alignment_(std::move(alignment)) {}
  /// Rows may be of different lengths. Cells are UTF-8, and may be painted.
  void row(std::vector<std::string> cells);
  /// A line of dashes as wide as the table.
  void rule();
  std::string text() const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;  // an empty one is a rule
};

}  // namespace quatrain
