#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace quatrain::data {

/// The alignments of a set's folder: those that ali.scp lists, or else those of all archives ali.ark, ali.gz,
/// ali.*.ark and ali.*.gz, which are read at once. A folder without any, a damaged archive, or an utterance
/// that is in two: c10::Error.
class KaldiAlignments {
 public:
  /// What a folder must hold one of.
  static constexpr const char* kFiles = "ali.scp, ali.ark, ali.gz, ali.*.ark or ali.*.gz";
  static bool are_in(const std::filesystem::path& folder);

  /// Of archives only what is wanted is kept.
  KaldiAlignments(const std::filesystem::path& folder,
                  const std::function<bool(const std::string& utterance)>& is_wanted);

  /// The classes of an utterance's frames, once; none where it has no alignment. What ali.scp names may be
  /// missing or damaged: c10::Error.
  std::optional<std::vector<int32_t>> take(const std::string& utterance);

 private:
  void read(const std::filesystem::path& archive,
            const std::function<bool(const std::string& utterance)>& is_wanted);

  std::map<std::string, std::string> locations_;
  struct Labels {
    std::vector<int32_t> classes;
    std::string archive;
  };
  std::map<std::string, Labels> labels_;
};

}  // namespace quatrain::data
