#pragma once

#include <string>

#include "support/numbers.h"
#include "support/text_table.h"

/// What the commands print.
namespace quatrain::cli {

/// A text that may come from a file: what would move a terminal's cursor or begin a line is written out.
std::string printable(const std::string& text);

}  // namespace quatrain::cli
