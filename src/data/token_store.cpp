#include "quatrain/data/token_store.h"

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

namespace quatrain::data {
namespace {

constexpr size_t kWaiting = 1 << 16;  // ids that are written together

std::string temporary_folder() {
  const char* named = std::getenv("TMPDIR");
  return named && *named ? named : "/tmp";
}

}  // namespace

TokenStore::TokenStore() {
  std::string name = (std::filesystem::path(temporary_folder()) / "quatrain-tokens-XXXXXX").string();
  fd_ = ::mkostemp(name.data(), O_CLOEXEC);
  TORCH_CHECK(fd_ >= 0, "TokenStore: cannot create a file in ", temporary_folder(), ": ",
              std::strerror(errno), "; name another folder with TMPDIR");
  ::unlink(name.c_str());
}

TokenStore::~TokenStore() {
  release();
}

TokenStore::TokenStore(TokenStore&& other) noexcept {
  *this = std::move(other);
}

TokenStore& TokenStore::operator=(TokenStore&& other) noexcept {
  if (this == &other) return *this;
  release();
  fd_ = std::exchange(other.fd_, -1);
  waiting_ = std::exchange(other.waiting_, {});
  offsets_ = std::exchange(other.offsets_, {0});
  ids_ = std::exchange(other.ids_, nullptr);
  finished_ = std::exchange(other.finished_, false);
  return *this;
}

void TokenStore::release() noexcept {
  if (ids_) ::munmap(const_cast<int32_t*>(ids_), static_cast<size_t>(tokens()) * sizeof(int32_t));
  if (fd_ >= 0) ::close(fd_);
  ids_ = nullptr;
  fd_ = -1;
}

void TokenStore::append(std::span<const int32_t> ids) {
  check_open();
  offsets_.push_back(offsets_.back());
  extend(ids);
}

void TokenStore::check_open() const {
  TORCH_CHECK(!finished_, "TokenStore: a finished store takes no more ids");
  TORCH_CHECK(fd_ >= 0, "TokenStore: the store was moved from");
}

void TokenStore::extend(std::span<const int32_t> ids) {
  check_open();
  if (offsets_.size() == 1) offsets_.push_back(0);
  offsets_.back() += static_cast<int64_t>(ids.size());
  waiting_.insert(waiting_.end(), ids.begin(), ids.end());
  if (waiting_.size() >= kWaiting) flush();
}

void TokenStore::flush() {
  const char* bytes = reinterpret_cast<const char*>(waiting_.data());
  for (size_t left = waiting_.size() * sizeof(int32_t); left > 0;) {
    const ssize_t written = ::write(fd_, bytes, left);
    if (written < 0 && errno == EINTR) continue;
    TORCH_CHECK(written > 0, "TokenStore: writing ", tokens() * static_cast<int64_t>(sizeof(int32_t)),
                " bytes of token ids to ", temporary_folder(), " failed: ", std::strerror(errno),
                "; name a folder with more room with TMPDIR");
    bytes += written;
    left -= static_cast<size_t>(written);
  }
  waiting_.clear();
}

void TokenStore::finish() {
  check_open();
  flush();
  waiting_ = {};
  offsets_.shrink_to_fit();
  if (const auto bytes = static_cast<size_t>(tokens()) * sizeof(int32_t); bytes > 0) {
    void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd_, 0);
    TORCH_CHECK(mapped != MAP_FAILED, "TokenStore: mapping ", bytes,
                " bytes into memory failed: ", std::strerror(errno));
    ids_ = static_cast<const int32_t*>(mapped);
  }
  ::close(std::exchange(fd_, -1));
  finished_ = true;
}

int64_t TokenStore::size() const {
  return static_cast<int64_t>(offsets_.size()) - 1;
}

int64_t TokenStore::tokens() const {
  return offsets_.back();
}

int64_t TokenStore::length(int64_t i) const {
  TORCH_CHECK(i >= 0 && i < size(), "TokenStore: the sequence must be from 0 to ", size() - 1, ", got ", i);
  return offsets_[static_cast<size_t>(i) + 1] - offsets_[static_cast<size_t>(i)];
}

std::span<const int32_t> TokenStore::operator[](int64_t i) const {
  const int64_t count = length(i);
  TORCH_CHECK(finished_, "TokenStore: sequences can be read after finish()");
  if (count == 0) return {};
  return {ids_ + offsets_[static_cast<size_t>(i)], static_cast<size_t>(count)};
}

}  // namespace quatrain::data
