#pragma once

#include <chrono>
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

/// What long work has come to, in a line on the standard error that is drawn again and again, and gone at the
/// end. Nothing where this is no terminal, or for work of less than a second.
class StatusLine {
 public:
  StatusLine();
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void show(const std::string& text);
  /// So that something else can be printed.
  void clear();

 private:
  bool terminal_, drawn_ = false;
  std::chrono::steady_clock::time_point next_;
};

/// Commands that leave files print about these: they have not failed where nobody can read that.
void forgive_closed_output(const std::string& command);

}  // namespace quatrain::cli
