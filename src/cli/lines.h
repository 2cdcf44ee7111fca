#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace quatrain::cli {

/// Lines from a file descriptor, in the portions in which they come: a pipe that pauses hands over what it
/// has, so that whoever waits for an answer gets one.
class LineInput {
 public:
  /// A line of more than `longest` bytes is handed over cut to one more than that: whoever asks refuses it.
  LineInput(int descriptor, size_t longest) : descriptor_(descriptor), longest_(longest) {}

  /// The next lines without their ends, at most `most` and some 8 MiB: waits for one, then takes those that
  /// are there already. Empty at the end of the input. A last line needs no end; "\r\n" ends a line too.
  /// A byte order mark before the first is left out.
  /// Throws std::system_error.
  std::vector<std::string> next(size_t most);

 private:
  bool take(std::string& line);
  bool waiting() const;
  void fill();

  int descriptor_;
  size_t longest_;
  std::string buffer_;
  size_t begin_ = 0;    // of what was not handed out
  size_t scanned_ = 0;  // up to here there is no end of a line
  bool ended_ = false, first_ = true;
  bool skips_ = false;  // the rest of a line that was cut
};

}  // namespace quatrain::cli
