#pragma once

#include <filesystem>

#include "quatrain/api.h"

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

/// Throws as a lock would, and takes none: for who reads a run's files first, which its trainer replaces.
QUATRAIN_API void refuse_training(const std::filesystem::path& run_folder);

}  // namespace quatrain::train
