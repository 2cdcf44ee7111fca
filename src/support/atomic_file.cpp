#include "support/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "support/atomic_folder.h"

namespace quatrain {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_at(const char* what, const fs::path& path, int error) {
  throw std::runtime_error(std::string(what) + " '" + AtomicFolder::name_of(path) +
                           "': " + std::strerror(error));
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Where a link leads, be there a file or not: the link itself stays.
fs::path followed(fs::path path) {
  constexpr int kMost = 40;  // as Linux does
  std::error_code error;
  for (int i = 0; fs::is_symlink(path, error); ++i) {
    if (i == kMost) fail_at("cannot create", path, ELOOP);
    const fs::path target = fs::read_symlink(path);
    path = target.is_absolute() ? target : folder_of(path) / target;
  }
  return path;
}

// Opens a file that nobody else writes. Another writer of the same file is waited for; what it renamed away
// meanwhile is not the file any more.
int open_alone(const fs::path& path) {
  for (;;) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) return -1;
    while (::flock(fd, LOCK_EX) != 0 && errno == EINTR) {
    }  // any other error: a file system without locks
    struct stat own {
    }, there{};
    const bool same = ::fstat(fd, &own) == 0 && ::lstat(path.c_str(), &there) == 0 &&
                      own.st_ino == there.st_ino && own.st_dev == there.st_dev;
    if (same && ::ftruncate(fd, 0) == 0) return fd;
    const int error = errno;
    ::close(fd);
    if (same) {
      errno = error;
      return -1;
    }
  }
}

}  // namespace

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  if (path_.native().find('\0') != std::string::npos)
    throw std::runtime_error("cannot create a file whose name contains the character 0");
  path_ = followed(path_);
  std::error_code error;
  const fs::file_status status = fs::status(path_, error);
  if (fs::is_directory(status)) fail_at("cannot write", path_, EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) {  // a device or a pipe takes what it is given
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  } else {
    beside_ = path_;
    beside_ += ".part";
    fd_ = open_alone(beside_);
  }
  if (fd_ < 0) fail("cannot create");
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  if (!beside_.empty()) ::unlink(beside_.c_str());  // before the next writer gets the lock
  ::close(fd_);
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
  if (beside_.empty()) {
    if (::close(std::exchange(fd_, -1)) != 0) fail("cannot write");
    return;
  }
  // On any error the destructor takes the file away.
  if (::fsync(fd_) != 0 || ::rename(beside_.c_str(), path_.c_str()) != 0) fail("cannot write");
  if (::close(std::exchange(fd_, -1)) != 0) fail("cannot write");
  sync_path(folder_of(path_));
}

void AtomicFile::fail(const char* what) const {
  fail_at(what, path_, errno);
}

void write_text(const fs::path& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text.data(), text.size());
  file.commit();
}

void sync_path(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_at("cannot open", path, errno);
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  // Some file systems cannot sync a folder; they say so with EINVAL.
  if (result != 0 && error != EINVAL) fail_at("cannot write", path, error);
}

}  // namespace quatrain
