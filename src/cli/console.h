#pragma once

#include <chrono>
#include <cstdio>
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
/// end; nothing for work of less than a second. Where this is no terminal, a line after half a minute, and
/// then ever more rarely.
class StatusLine {
 public:
  explicit StatusLine(std::FILE* out = stderr);
  /// The same, told whether `out` is a terminal, and after how many seconds there is something.
  StatusLine(std::FILE* out, bool terminal, double seconds);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void show(const std::string& text);
  /// So that something else can be printed.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::FILE* out_;
  bool terminal_, drawn_ = false;
  Clock::duration pause_;
  Clock::time_point begun_ = Clock::now(), next_;
};

/// Commands that leave files print about these: they have not failed where nobody can read that.
void forgive_closed_output(const std::string& command);

}  // namespace quatrain::cli
