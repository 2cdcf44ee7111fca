#include "data/byte_file.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace quatrain::data {
namespace {

constexpr int64_t kReadAtOnce = 1 << 16;

}  // namespace

ByteFile::ByteFile(std::filesystem::path file) : content_(std::move(file)) {
  if (!content_.is_compressed()) size_ = static_cast<int64_t>(std::filesystem::file_size(path()));
}

std::optional<int64_t> ByteFile::left() const {
  return size_ ? std::optional(*size_ - offset_) : std::nullopt;
}

bool ByteFile::refill() {
  if (!rest_.empty()) return true;
  rest_ = content_.next();
  if (rest_.empty())
    content_.check(content_.is_compressed() ? "after " + std::to_string(offset_) + " bytes of its content"
                                            : "at byte " + std::to_string(offset_));
  return !rest_.empty();
}

int ByteFile::peek() {
  return refill() ? static_cast<unsigned char>(rest_.front()) : -1;
}

int ByteFile::get() {
  const int byte = peek();
  if (byte >= 0) rest_.remove_prefix(1), ++offset_;
  return byte;
}

std::string ByteFile::read(int64_t count) {
  std::string bytes;
  if (const auto known = left())
    bytes.reserve(static_cast<size_t>(std::min(count, std::max<int64_t>(*known, 0))));
  while (std::ssize(bytes) < count && refill()) {
    const auto part = rest_.substr(0, static_cast<size_t>(count - std::ssize(bytes)));
    bytes += part;
    rest_.remove_prefix(part.size());
    offset_ += std::ssize(part);
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
  TORCH_CHECK(size_, "data: ", path().string(), " is compressed, and byte ", offset,
              " of it cannot be reached; decompress it (gunzip)");
  TORCH_CHECK(offset >= 0 && offset <= *size_, "data: byte ", offset, " of ", path().string(),
              " is needed, but the file has ", *size_, "; it is cut off, or another file than was meant");
  TORCH_CHECK(content_.seek(offset), "data: byte ", offset, " of ", path().string(),
              " cannot be reached: ", std::strerror(errno));
  rest_ = {};
  offset_ = offset;
}

}  // namespace quatrain::data
