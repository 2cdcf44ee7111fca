#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quatrain/api.h"

/// What reports and commands print.
namespace quatrain {

/// 1234567 -> "1,234,567".
QUATRAIN_API std::string grouped(int64_t number);
/// "0.123", "1.2e-07".
std::string short_number(double value);
/// The name, or what stands for the module itself.
std::string layer_name(const std::string& name);

/// Rows of cells in aligned columns.
class QUATRAIN_API TextTable {
 public:
  /// One letter a column, l (to the left) or r (to the right); the last one holds for all that follow.
  explicit TextTable(std::string alignment = "lr") : alignment_(std::move(alignment)) {}
  /// Rows may be of different lengths. Cells are UTF-8, and may be painted.
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// A line of dashes under what is there.
  void rule() { rows_.emplace_back(); }
  std::string text() const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;  // an empty one is a rule
};

}  // namespace quatrain
