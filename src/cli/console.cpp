#include "cli/console.h"

#include <cstdio>

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

}  // namespace quatrain::cli
