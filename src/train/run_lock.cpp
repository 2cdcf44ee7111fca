#include "train/run_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "quatrain/train/checkpoint.h"

namespace quatrain::train {
namespace {

int open_folder(const std::filesystem::path& folder) {
  return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

[[noreturn]] void refuse(const std::filesystem::path& run_folder) {
  throw std::runtime_error("another process trains in '" + run_folder.string() +
                           "': wait until it ends or stop it, or choose another folder");
}

}  // namespace

RunLock::RunLock(const std::filesystem::path& run_folder) : fd_(open_folder(run_folder)) {
  if (fd_ < 0)
    throw std::runtime_error("cannot open the folder '" + run_folder.string() + "': " + std::strerror(errno));
  // Tried again, since is_training() holds a lock of its own for a moment.
  for (int tries = 5; ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;) {
    if (--tries == 0) {
      ::close(fd_);
      refuse(run_folder);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

RunLock::~RunLock() {
  ::close(fd_);
}

void refuse_training(const std::filesystem::path& run_folder) {
  if (is_training(run_folder)) refuse(run_folder);
}

bool is_training(const std::filesystem::path& run_folder) {
  const int fd = open_folder(run_folder);
  if (fd < 0) return false;
  const bool held = ::flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return held;
}

}  // namespace quatrain::train
