#pragma once

#include <string>
#include <vector>

#include "support/numbers.h"
#include "support/text_table.h"

/// What the commands print.
namespace quatrain::cli {

/// A text that may come from a file: what would move a terminal's cursor or begin a line is written out.
std::string printable(const std::string& text);

/// Writes what there is to say of something to the standard error, a line each.
void print_notes(const std::vector<std::string>& notes);
void print_note(const std::string& note);

/// Commands that leave files print about these: they have not failed where nobody can read that.
void forgive_closed_output(const std::string& command);

}  // namespace quatrain::cli
