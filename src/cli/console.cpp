#include "cli/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "support/terminal.h"
#include "support/text.h"

namespace quatrain::cli {
namespace {

constexpr double kSecondsBetweenStatus = 30;

}  // namespace

std::string printable(const std::string& text) {
  std::string shown;
  for (const char c : text) {
    if (c == '\t' || c == '\n')
      shown += c == '\t' ? "\\t" : "\\n";
    else if (static_cast<unsigned char>(c) < ' ' || c == 0x7F)
      shown += escaped(c);
    else
      shown += c;
  }
  return shown;
}

void print_note(const std::string& note) {
  std::fprintf(stderr, "%s\n", printable(note).c_str());
}

void print_notes(const std::vector<std::string>& notes) {
  for (const auto& note : notes) print_note(note);
}

StatusLine::StatusLine(std::FILE* out)
    : StatusLine(out, ::isatty(::fileno(out)) != 0,
                 ::isatty(::fileno(out)) != 0 ? 1 : kSecondsBetweenStatus) {}

StatusLine::StatusLine(std::FILE* out, bool terminal, double seconds)
    : out_(out),
      terminal_(terminal),
      pause_(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))),
      next_(begun_ + pause_) {}

StatusLine::~StatusLine() {
  clear();
}

void StatusLine::show(const std::string& text) {
  const auto now = Clock::now();
  if (now < next_) return;
  clear();
  drawn_ = terminal_;
  if (terminal_) {
    std::fputs(cut_to_row(text, out_).c_str(), out_);
    next_ = now + std::chrono::milliseconds(200);
  } else {
    std::fprintf(out_, "%s\n", printable(text).c_str());
    next_ = now + std::max(pause_, now - begun_);
  }
  std::fflush(out_);
}

void StatusLine::clear() {
  if (drawn_) std::fputs(kClearRow, out_);
  drawn_ = false;
}

void forgive_closed_output(const std::string& command) {
  constexpr std::string_view kLeaveFiles[] = {"train", "average", "shortlist", "plot", "convert", "compare"};
  if (std::find(std::begin(kLeaveFiles), std::end(kLeaveFiles), command) == std::end(kLeaveFiles) ||
      (::fcntl(STDOUT_FILENO, F_GETFL) & O_ACCMODE) != O_RDONLY)
    return;
  const int nowhere = ::open("/dev/null", O_WRONLY);
  ::dup2(nowhere, STDOUT_FILENO);
  ::close(nowhere);
}

}  // namespace quatrain::cli
