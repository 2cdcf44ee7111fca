#include "data/content.h"

#include <c10/util/Exception.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "data/text_file.h"

namespace quatrain::data {
namespace {

constexpr size_t kContentPortion = 1 << 16;
constexpr int kOfGzipAlone = 16 + MAX_WBITS;

}  // namespace

void Content::Close::operator()(std::FILE* stream) const {
  std::fclose(stream);
}

void Content::Close::operator()(z_stream_s* inflate) const {
  inflateEnd(inflate);
  delete inflate;
}

Content::Content(std::filesystem::path file) : file_(std::move(file)), input_(kContentPortion) {
  try {
    check_file(file_);
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK(false, "data: ", file_.string(), " cannot be read: ", error.what());
  }
  stream_.reset(std::fopen(file_.c_str(), "rbe"));
  TORCH_CHECK(stream_, "data: ", file_.string(), " cannot be opened for reading: check its permissions");
  std::setvbuf(stream_.get(), nullptr, _IONBF, 0);
  refill();
  if (!read_.starts_with("\x1F\x8B")) return;
  inflate_.reset(new z_stream{});
  TORCH_CHECK(inflateInit2(inflate_.get(), kOfGzipAlone) == Z_OK, "data: there is no memory to decompress ",
              file_.string());
  output_.resize(kContentPortion);
}

bool Content::refill() {
  const size_t count = std::fread(input_.data(), 1, input_.size(), stream_.get());
  if (count == 0 && std::ferror(stream_.get())) error_ = errno;
  read_ = {input_.data(), count};
  return count > 0;
}

std::string_view Content::next() {
  if (inflate_) return decompressed();
  if (read_.empty()) refill();
  return std::exchange(read_, {});
}

std::string_view Content::decompressed() {
  z_stream& z = *inflate_;
  z.next_out = reinterpret_cast<Bytef*>(output_.data());
  z.avail_out = static_cast<uInt>(output_.size());
  while (z.avail_out == output_.size() && damage_.empty()) {
    if (read_.empty() && !refill()) {
      if (!between_members_ && error_ == 0) damage_ = "cut off";
      break;
    }
    if (between_members_) {
      // Zeros fill up the blocks of tapes, behind the last one.
      const size_t zeros = std::min(read_.find_first_not_of('\0'), read_.size());
      padded_ = padded_ || zeros > 0;
      read_.remove_prefix(zeros);
      if (read_.empty()) continue;
      if (padded_ || read_.front() != '\x1F') {
        damage_ = "damaged (other bytes follow a compressed part)";
        break;
      }
      between_members_ = false;
      inflateReset(&z);
    }
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(read_.data()));
    z.avail_in = static_cast<uInt>(read_.size());
    const int state = inflate(&z, Z_NO_FLUSH);
    read_.remove_prefix(read_.size() - z.avail_in);
    between_members_ = state == Z_STREAM_END;
    if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
      damage_ = "damaged (" + std::string(z.msg ? z.msg : zError(state)) + ")";
  }
  return {output_.data(), output_.size() - z.avail_out};
}

void Content::check(const std::string& where) const {
  TORCH_CHECK(error_ == 0, "data: reading ", file_.string(), " failed ", where, ": ", std::strerror(error_));
  TORCH_CHECK(damage_.empty(), "data: ", file_.string(), " is a compressed file that is ", damage_, " ",
              where, "; copy or compress it again");
}

bool Content::seek(int64_t offset) {
  read_ = {};
  return ::fseeko(stream_.get(), offset, SEEK_SET) == 0;
}

}  // namespace quatrain::data
