#include "train/run_files.h"

#include <algorithm>

#include "train/checkpoint.h"

namespace quatrain::train {

namespace fs = std::filesystem;

namespace {
constexpr std::string_view kCounts = ".counts.tsv";
}

std::string counts_file(const std::string& figure) {
  return figure + std::string(kCounts);
}

bool is_counts_file(const std::string& name) {
  return name.ends_with(kCounts);
}

bool is_answers_file(const std::string& name) {
  return name == kPredictionsFile ||
         std::any_of(kAnswerEndings.begin(), kAnswerEndings.end(),
                     [&](const char* ending) { return name == std::string("test") + ending; });
}

fs::path answers_of_none(const fs::path& folder) {
  std::error_code none;
  if (!fs::is_directory(folder, none) || holds_run(folder)) return {};
  for (fs::directory_iterator entry(folder, none), end; !none && entry != end; entry.increment(none))
    if (is_answers_file(entry->path().filename().string())) return entry->path();
  return {};
}

bool is_average(const fs::path& run_folder) {
  const fs::path best = run_folder / "best";
  std::error_code error;
  const bool is = fs::exists(best / kAverageFile, error);
  // The folder is what the system refuses: few runs have such a file.
  if (error) throw fs::filesystem_error("is_average", best, error);
  return is;
}

std::string damage_of_scored(const fs::path& file) {
  const fs::path run_folder = file.parent_path();
  const bool is_there = fs::exists(file);
  return "'" + file.string() + "' is " + (is_there ? "not what a trainer wrote" : "missing") + ": " +
         (is_average(run_folder) ? "make the mean again with quatrain average"
                                 : std::string(is_there ? "delete it and " : "delete ") + kResultFile +
                                       ", then resume the run, which scores the test set again");
}

RunParts parts_of(const fs::path& run_folder) {
  RunParts parts;
  parts.result = fs::exists(run_folder / kResultFile);
  parts.metrics = (parts.result && !is_average(run_folder)) || has_checkpoint(run_folder) ||
                  fs::exists(run_folder / kMetricsFile);
  if (!parts.metrics || parts.result || has_checkpoint(run_folder, "best"))
    parts.checkpoints.push_back("best");
  if (parts.metrics) parts.checkpoints.push_back("last");
  for (const fs::path& folder : older_checkpoints(run_folder))
    parts.checkpoints.push_back(folder.filename().string());
  return parts;
}

}  // namespace quatrain::train
