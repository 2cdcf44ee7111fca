#include "support/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace quatrain {
namespace {

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)), beside_(path_) {
  beside_ += ".part";
  fd_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("cannot create");
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(beside_.c_str());
}

void AtomicFile::write(const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    // Linux moves at most 2 GB in one call.
    const ssize_t written = ::write(fd_, at, std::min<size_t>(size, size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("cannot write");
    at += written;
    size -= static_cast<size_t>(written);
  }
}

void AtomicFile::commit() {
  if (::fsync(fd_) != 0) fail("cannot write");
  const int fd = std::exchange(fd_, -1);
  if (::close(fd) != 0 || ::rename(beside_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(beside_.c_str());
    errno = error;
    fail("cannot write");
  }
  sync_path(folder_of(path_));
}

void AtomicFile::fail(const char* what) const {
  const int error = errno;
  throw std::runtime_error(std::string(what) + " '" + path_.string() + "': " + std::strerror(error));
}

void write_text(const std::filesystem::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

void sync_path(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw std::runtime_error("cannot open '" + path.string() + "': " + std::strerror(errno));
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  // Some file systems cannot sync a folder; they say so with EINVAL.
  if (result != 0 && error != EINVAL)
    throw std::runtime_error("cannot write '" + path.string() + "': " + std::strerror(error));
}

}  // namespace quatrain
