#pragma once

#include <filesystem>

namespace quatrain::train {

/// Keeps other trainers out of a run's folder, for as long as it lives; the system lets go of it when the
/// process ends, however it ends. On a file system without locks it keeps nobody out.
class RunLock {
 public:
  /// A folder that another process trains in is a std::runtime_error.
  explicit RunLock(const std::filesystem::path& run_folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  int fd_ = -1;
};

}  // namespace quatrain::train
