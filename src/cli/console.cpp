#include "cli/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "support/text.h"

namespace quatrain::cli {

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
