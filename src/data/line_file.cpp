#include "data/line_file.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "data/text_file.h"

namespace quatrain::data {
namespace {

// With a byte order mark and a carriage return, and one byte more, so that its length tells that it is too
// long.
constexpr size_t kMostKept = kLongestLine + 8;
// Behind so many bytes a line is cut at the next space.
constexpr size_t kLongPart = kLongestLine / 2;

}  // namespace

LineFile::LineFile(std::filesystem::path file, bool cuts) : content_(std::move(file)), cuts_(cuts) {}

std::string LineFile::place() const {
  return data::place(file(), number_);
}

bool LineFile::refill() {
  rest_ = content_.next();
  if (rest_.empty()) content_.check("after line " + std::to_string(number_));
  return !rest_.empty();
}

bool LineFile::next(std::string_view& line) {
  begun_.clear();
  const bool follows = std::exchange(goes_on_, false);
  const auto keep = [this](std::string_view part) {
    begun_.append(part.substr(0, kMostKept - std::min(kMostKept, begun_.size())));
  };
  for (bool begun = false;; begun = true) {
    if (rest_.empty() && !refill()) {
      TORCH_CHECK(begun || number_ > 0, "data: ", file().string(), " is empty");
      if (!begun) return false;
      line = begun_;  // the last one, without an end
      break;
    }
    const size_t end = rest_.find('\n');
    const std::string_view part = rest_.substr(0, end);
    const size_t space = cuts_ && begun_.size() >= kLongPart ? part.find_first_of(" \t") : part.npos;
    if (space != part.npos) {
      keep(part.substr(0, space + 1));
      line = begun_;
      rest_.remove_prefix(space + 1);
      goes_on_ = true;
      break;
    }
    if (end != rest_.npos && !begun) {
      line = part;
    } else {
      keep(part);
      line = begun_;
    }
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
    if (end != std::string_view::npos) break;
  }
  if (!follows && ++number_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  if (!goes_on_ && line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

}  // namespace quatrain::data
