#include "data/byte_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "data/text_file.h"

namespace quatrain::data {
namespace {

constexpr int64_t kReadAtOnce = 1 << 16;

}  // namespace

void ByteFile::Close::operator()(gzFile_s* stream) const {
  gzclose_r(stream);
}

ByteFile::ByteFile(std::filesystem::path file) : path_(std::move(file)) {
  try {
    check_file(path_);
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, "data: ", path_.string(), " cannot be read: ", error.what());
  }
  stream_.reset(gzopen(path_.c_str(), "rb"));
  TORCH_CHECK(stream_, "data: ", path_.string(), " cannot be opened for reading: check its permissions");
  gzbuffer(stream_.get(), kReadAtOnce);
  if (gzdirect(stream_.get())) size_ = static_cast<int64_t>(std::filesystem::file_size(path_));
}

std::optional<int64_t> ByteFile::left() const {
  return size_ ? std::optional(*size_ - offset_) : std::nullopt;
}

void ByteFile::check_read() const {
  int error = Z_OK;
  const char* what = gzerror(stream_.get(), &error);
  TORCH_CHECK(error != Z_ERRNO, "data: reading ", path_.string(), " failed at byte ", offset_, ": ",
              std::strerror(errno));
  TORCH_CHECK(
      error == Z_OK || error == Z_STREAM_END, "data: ", path_.string(), " is a compressed file that is ",
      error == Z_BUF_ERROR ? std::string("cut off") : "damaged (" + std::string(what ? what : "") + ")",
      " after ", offset_, " bytes of its content; copy or compress it again");
}

int ByteFile::get() {
  const int byte = gzgetc(stream_.get());
  if (byte < 0)
    check_read();
  else
    ++offset_;
  return byte;
}

int ByteFile::peek() {
  const int byte = get();
  if (byte >= 0) {
    gzungetc(byte, stream_.get());
    --offset_;
  }
  return byte;
}

std::string ByteFile::read(int64_t count) {
  std::string bytes;
  if (const auto known = left())
    bytes.reserve(static_cast<size_t>(std::min(count, std::max<int64_t>(*known, 0))));
  while (count > 0) {
    const auto asked = static_cast<size_t>(std::min(count, kReadAtOnce));
    const size_t begin = bytes.size();
    bytes.resize(begin + asked);
    const int got = gzread(stream_.get(), bytes.data() + begin, static_cast<unsigned>(asked));
    bytes.resize(begin + static_cast<size_t>(std::max(got, 0)));
    offset_ += std::max(got, 0);
    count -= std::max(got, 0);
    if (got < static_cast<int>(asked)) {
      check_read();
      break;
    }
  }
  return bytes;
}

void ByteFile::skip(int64_t count) {
  if (const auto known = left()) return seek(offset_ + std::min(count, *known));
  while (count > 0) {
    const auto got = static_cast<int64_t>(read(std::min(count, kReadAtOnce)).size());
    if (got == 0) return;
    count -= got;
  }
}

void ByteFile::seek(int64_t offset) {
  TORCH_CHECK(size_, "data: ", path_.string(), " is compressed, and byte ", offset,
              " of it cannot be reached; decompress it (gunzip)");
  TORCH_CHECK(offset >= 0 && offset <= *size_, "data: byte ", offset, " of ", path_.string(),
              " is needed, but the file has ", *size_, "; it is cut off, or another file than was meant");
  TORCH_CHECK(gzseek(stream_.get(), offset, SEEK_SET) == offset, "data: byte ", offset, " of ",
              path_.string(), " cannot be reached: ", std::strerror(errno));
  offset_ = offset;
}

}  // namespace quatrain::data
