#include "data/line_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "data/text_file.h"

namespace quatrain::data {
namespace {

constexpr size_t kPortion = 1 << 16;
// With a byte order mark and a carriage return, and one byte more, so that its length tells that it is too
// long.
constexpr size_t kMostKept = kLongestLine + 8;

}  // namespace

void LineFile::Close::operator()(gzFile_s* stream) const {
  gzclose_r(stream);
}

LineFile::LineFile(std::filesystem::path file) : file_(std::move(file)) {
  try {
    check_file(file_);
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, "data: ", file_.string(), " cannot be read: ", error.what());
  }
  stream_.reset(gzopen(file_.c_str(), "rb"));
  TORCH_CHECK(stream_, "data: ", file_.string(), " cannot be opened for reading: check its permissions");
  gzbuffer(stream_.get(), kPortion);
  portion_.resize(kPortion);
}

std::string LineFile::place() const {
  return data::place(file_, number_);
}

bool LineFile::refill() {
  const int count = gzread(stream_.get(), portion_.data(), kPortion);
  if (count <= 0) {
    int error = Z_OK;
    const char* what = gzerror(stream_.get(), &error);
    TORCH_CHECK(error != Z_ERRNO, "data: reading ", file_.string(), " failed after line ", number_, ": ",
                std::strerror(errno));
    TORCH_CHECK(
        error == Z_OK || error == Z_STREAM_END, "data: ", file_.string(), " is a compressed file that is ",
        error == Z_BUF_ERROR ? std::string("cut off") : "damaged (" + std::string(what ? what : "") + ")",
        " after line ", number_, "; copy or compress it again");
  }
  rest_ = {portion_.data(), static_cast<size_t>(std::max(count, 0))};
  return count > 0;
}

bool LineFile::next(std::string_view& line) {
  begun_.clear();
  const auto keep = [this](std::string_view part) {
    begun_.append(part.substr(0, kMostKept - std::min(kMostKept, begun_.size())));
  };
  for (bool begun = false;; begun = true) {
    if (rest_.empty() && !refill()) {
      TORCH_CHECK(begun || number_ > 0, "data: ", file_.string(), " is empty");
      if (!begun) return false;
      line = begun_;  // the last one, without an end
      break;
    }
    const size_t end = rest_.find('\n');
    const std::string_view part = rest_.substr(0, end);
    if (end != rest_.npos && !begun) {
      line = part;
    } else {
      keep(part);
      line = begun_;
    }
    rest_.remove_prefix(end == rest_.npos ? rest_.size() : end + 1);
    if (end != std::string_view::npos) break;
  }
  if (++number_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

}  // namespace quatrain::data
