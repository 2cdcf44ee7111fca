#pragma once

#include <filesystem>
#include <string>

#include "quatrain/api.h"

namespace quatrain {

/// A folder that is written beside its place, under a name of its own (PLACE.part.PROCESS.NUMBER), and
/// renamed when it is whole: nobody sees a part of it. Without commit() nothing is left behind, unless the
/// process is killed.
class QUATRAIN_API AtomicFolder {
 public:
  /// A place that exists is a std::runtime_error, unless it is an empty folder and may be replaced.
  explicit AtomicFolder(const std::filesystem::path& place, bool replaces_empty = false);
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  /// True for the name of a folder that is not whole: it is being written, or a killed process left it.
  static bool is_unfinished(const std::filesystem::path& folder);
  /// What a path in folders that this process is writing will be called: a message names it so.
  static std::string name_of(const std::filesystem::path& path);

  /// Where to write until commit().
  const std::filesystem::path& path() const { return beside_; }
  /// The files in it must be on the disk already, as AtomicFile puts them there.
  void commit();

 private:
  void refuse_existing() const;

  std::filesystem::path place_, beside_;
  bool replaces_empty_;
};

}  // namespace quatrain
