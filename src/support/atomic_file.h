#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "quatrain/api.h"

namespace quatrain {

/// A file that is written beside its place and renamed when it is whole and on the disk: whoever looks sees
/// the old file or the new one. Without commit() nothing is left behind. A link stays a link: what it leads
/// to is written. A device or a pipe is written to, and stays. Two writers of one file wait for each other,
/// in one process or several, and the last one's file stays. Errors are std::runtime_error.
class QUATRAIN_API AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  void commit();

 private:
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_, beside_;
  int fd_ = -1;
};

/// Writes a small text the same way.
QUATRAIN_API void write_text(const std::filesystem::path& path, const std::string& text);

/// Puts a file's or a folder's own entries on the disk.
QUATRAIN_API void sync_path(const std::filesystem::path& path);

}  // namespace quatrain
