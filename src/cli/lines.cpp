#include "cli/lines.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

namespace quatrain::cli {

std::vector<std::string> LineInput::next(size_t most) {
  constexpr size_t kMostBytes = 8 << 20;
  std::vector<std::string> lines;
  std::string line;
  size_t bytes = 0;
  while (lines.size() < most && bytes < kMostBytes) {
    if (take(line)) {
      bytes += line.size();
      lines.push_back(std::move(line));
    } else if (ended_ || (!lines.empty() && !waiting())) {
      break;
    } else {
      fill();
    }
  }
  return lines;
}

bool LineInput::take(std::string& line) {
  if (skips_) {
    const auto end = buffer_.find('\n', begin_);
    begin_ = scanned_ = end == buffer_.npos ? buffer_.size() : end + 1;
    if (end == buffer_.npos) return false;
    skips_ = false;
  }
  auto end = buffer_.find('\n', scanned_);
  if (end == buffer_.npos) {
    scanned_ = buffer_.size();
    if (buffer_.size() - begin_ > longest_ + 1) {  // room for a "\r"
      line = buffer_.substr(begin_, longest_ + 1);
      begin_ = scanned_ = buffer_.size();
      skips_ = true;
      return true;
    }
    if (!ended_ || begin_ == buffer_.size()) return false;
    end = buffer_.size();
  }
  if (std::exchange(first_, false) && std::string_view(buffer_).substr(begin_).starts_with("\xEF\xBB\xBF"))
    begin_ += 3;  // a byte order mark
  const size_t length = end - begin_;
  line = buffer_.substr(begin_, length > 0 && buffer_[end - 1] == '\r' ? length - 1 : length);
  begin_ = scanned_ = std::min(end + 1, buffer_.size());
  return true;
}

// True where a read would not wait.
bool LineInput::waiting() const {
  pollfd poller{descriptor_, POLLIN, 0};
  return ::poll(&poller, 1, 0) > 0;
}

void LineInput::fill() {
  constexpr size_t kPortion = 1 << 16;
  buffer_.erase(0, begin_);
  scanned_ -= begin_;
  begin_ = 0;
  const size_t before = buffer_.size();
  buffer_.resize(before + kPortion);
  ssize_t got = 0;
  do got = ::read(descriptor_, buffer_.data() + before, kPortion);
  while (got < 0 && errno == EINTR);
  buffer_.resize(before + static_cast<size_t>(got > 0 ? got : 0));
  if (got < 0) throw std::system_error(errno, std::generic_category(), "cannot read the standard input");
  ended_ = got == 0;
}

}  // namespace quatrain::cli
