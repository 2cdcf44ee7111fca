#pragma once

#include <cstdint>
#include <string>

#include "support/text_table.h"

/// What the commands print: numbers for people, and tables.
namespace quatrain::cli {

/// The program's version.
const char* version();

using quatrain::grouped;
using Table = TextTable;

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

}  // namespace quatrain::cli
