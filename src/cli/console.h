#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// What the commands print: numbers for people, and tables.
namespace quatrain::cli {

/// The program's version.
const char* version();

/// 1234567 -> "1,234,567".
std::string grouped(int64_t number);
/// "1 seed", "3 seeds".
std::string counted(int64_t number, const std::string& what);
/// A number with that many digits after the point.
std::string fixed(double number, int digits);
/// 0.931 -> "93.1%".
std::string percent(double share, int digits = 1);
/// Bytes as "1.63 MB".
std::string bytes(double size);
/// Seconds as "12.3 us", "4.56 ms", "1.2 s".
std::string seconds(double time);
/// "0.27x"; "-" where there is nothing to compare with.
std::string ratio(double value, double reference);

/// A text that may come from a file: what would move a terminal's cursor or begin a line is written out.
std::string printable(const std::string& text);

/// The text in a colour of the terminal (an SGR code: 32 green, 31 red).
std::string painted(const std::string& text, const char* colour);

/// Rows of cells in aligned columns.
class Table {
 public:
  /// One letter a column, l (to the left) or r (to the right); the last one holds for all that follow.
  explicit Table(std::string alignment = "lr") : alignment_(std::move(alignment)) {}
  /// Rows may be of different lengths. Cells are UTF-8, and may be painted.
  void row(std::vector<std::string> cells);
  /// A line of dashes under what is there.
  void rule();
  std::string text() const;

 private:
  std::string alignment_;
  std::vector<std::vector<std::string>> rows_;  // an empty one is a rule
};

}  // namespace quatrain::cli
