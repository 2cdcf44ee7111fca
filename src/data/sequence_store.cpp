#include "quatrain/data/sequence_store.h"

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

constexpr size_t kWaiting = 1 << 16;  // numbers that are written together

std::string temporary_folder() {
  const char* named = std::getenv("TMPDIR");
  return named && *named ? named : "/tmp";
}

}  // namespace

template <class Number>
SequenceStore<Number>::SequenceStore() {
  std::string name = (std::filesystem::path(temporary_folder()) / "quatrain-data-XXXXXX").string();
  fd_ = ::mkostemp(name.data(), O_CLOEXEC);
  TORCH_CHECK(fd_ >= 0, "SequenceStore: cannot create a file in ", temporary_folder(), ": ",
              std::strerror(errno), "; name another folder with TMPDIR");
  ::unlink(name.c_str());
}

template <class Number>
SequenceStore<Number>::~SequenceStore() {
  release();
}

template <class Number>
SequenceStore<Number>::SequenceStore(SequenceStore&& other) noexcept {
  *this = std::move(other);
}

template <class Number>
SequenceStore<Number>& SequenceStore<Number>::operator=(SequenceStore&& other) noexcept {
  if (this == &other) return *this;
  release();
  fd_ = std::exchange(other.fd_, -1);
  waiting_ = std::exchange(other.waiting_, {});
  offsets_ = std::exchange(other.offsets_, {0});
  mapped_ = std::exchange(other.mapped_, nullptr);
  finished_ = std::exchange(other.finished_, false);
  return *this;
}

template <class Number>
void SequenceStore<Number>::release() noexcept {
  if (mapped_) ::munmap(const_cast<Number*>(mapped_), static_cast<size_t>(numbers()) * sizeof(Number));
  if (fd_ >= 0) ::close(fd_);
  mapped_ = nullptr;
  fd_ = -1;
}

template <class Number>
void SequenceStore<Number>::append(std::span<const Number> numbers) {
  check_open();
  offsets_.push_back(offsets_.back());
  extend(numbers);
}

template <class Number>
void SequenceStore<Number>::check_open() const {
  TORCH_CHECK(!finished_, "SequenceStore: a finished store takes no more numbers");
  TORCH_CHECK(fd_ >= 0, "SequenceStore: the store was moved from");
}

template <class Number>
void SequenceStore<Number>::extend(std::span<const Number> numbers) {
  check_open();
  if (offsets_.size() == 1) offsets_.push_back(0);
  offsets_.back() += static_cast<int64_t>(numbers.size());
  waiting_.insert(waiting_.end(), numbers.begin(), numbers.end());
  if (waiting_.size() >= kWaiting) flush();
}

template <class Number>
void SequenceStore<Number>::flush() {
  const char* bytes = reinterpret_cast<const char*>(waiting_.data());
  for (size_t left = waiting_.size() * sizeof(Number); left > 0;) {
    const ssize_t written = ::write(fd_, bytes, left);
    if (written < 0 && errno == EINTR) continue;
    TORCH_CHECK(written > 0, "data: writing ", numbers() * static_cast<int64_t>(sizeof(Number)), " bytes to ",
                temporary_folder(), " failed: ", std::strerror(errno),
                "; encoded sets are kept there, so name a folder with more room with TMPDIR");
    bytes += written;
    left -= static_cast<size_t>(written);
  }
  waiting_.clear();
}

template <class Number>
void SequenceStore<Number>::finish() {
  check_open();
  flush();
  waiting_ = {};
  offsets_.shrink_to_fit();
  if (const auto bytes = static_cast<size_t>(numbers()) * sizeof(Number); bytes > 0) {
    void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd_, 0);
    TORCH_CHECK(mapped != MAP_FAILED, "SequenceStore: mapping ", bytes,
                " bytes into memory failed: ", std::strerror(errno));
    mapped_ = static_cast<const Number*>(mapped);
  }
  ::close(std::exchange(fd_, -1));
  finished_ = true;
}

template <class Number>
int64_t SequenceStore<Number>::size() const {
  return static_cast<int64_t>(offsets_.size()) - 1;
}

template <class Number>
int64_t SequenceStore<Number>::numbers() const {
  return offsets_.back();
}

template <class Number>
int64_t SequenceStore<Number>::length(int64_t i) const {
  TORCH_CHECK(i >= 0 && i < size(), "SequenceStore: the sequence must be from 0 to ", size() - 1, ", got ",
              i);
  return offsets_[static_cast<size_t>(i) + 1] - offsets_[static_cast<size_t>(i)];
}

template <class Number>
std::span<const Number> SequenceStore<Number>::operator[](int64_t i) const {
  const int64_t count = length(i);
  TORCH_CHECK(finished_, "SequenceStore: sequences can be read after finish()");
  if (count == 0) return {};
  return {mapped_ + offsets_[static_cast<size_t>(i)], static_cast<size_t>(count)};
}

template class SequenceStore<uint8_t>;
template class SequenceStore<int32_t>;
template class SequenceStore<float>;

}  // namespace quatrain::data
