#include "support/terminal.h"

#include <sys/ioctl.h>

namespace quatrain {

std::string cut_to_row(const std::string& text, std::FILE* terminal) {
  winsize size{};
  if (::ioctl(::fileno(terminal), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return text;
  size_t end = 0, columns = 0;
  for (; end < text.size(); ++end) {
    const bool begins = (static_cast<unsigned char>(text[end]) & 0xc0) != 0x80;  // a character of UTF-8
    if (begins && ++columns >= size.ws_col) break;
  }
  return text.substr(0, end);
}

}  // namespace quatrain
