#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "quatrain/api.h"

/// What a run's folder holds beside its checkpoints, and what of all that has to be there.
namespace quatrain::train {

inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kResultFile = "result.json";
inline constexpr const char* kPredictionsFile = "predictions.tsv";
/// What tasks keep of a scored set: its answers, and where they are wrong.
inline constexpr std::array<const char*, 8> kAnswerEndings = {
    ".hypotheses.txt", ".ranking.tsv", ".confusions.tsv", ".answers.tsv",
    ".errors.txt",     ".ref.trn",     ".hyp.trn",        ".ctm"};
inline constexpr const char* kShortlistFile =
    "shortlist";  ///< made later: the likely target tokens of each token
inline constexpr const char* kAverageFile = "average.json";  ///< in best/ of a mean: of which checkpoints

/// Where the counts of the test set's examples are that a figure is computed from.
QUATRAIN_API std::string counts_file(const std::string& figure);
/// True for such a name.
QUATRAIN_API bool is_counts_file(const std::string& name);

/// True for the name of a file of the test set's answers.
bool is_answers_file(const std::string& name);

/// A file that is no run's, though it has the name of one of its answers, in a folder that holds no run; or
/// "".
QUATRAIN_API std::filesystem::path answers_of_none(const std::filesystem::path& folder);

/// True where a run is the mean of another's checkpoints, which nothing can be trained on from.
QUATRAIN_API bool is_average(const std::filesystem::path& run_folder);

/// What a message says of a file in a run's folder that scoring the test set made, and that is missing or
/// damaged.
QUATRAIN_API std::string damage_of_scored(const std::filesystem::path& file);

/// What has to be in a run's folder, as far as the run has come; it may be missing.
struct QUATRAIN_API RunParts {
  bool metrics = false;  ///< a trainer has begun; a converted or averaged run has best/ alone
  bool result = false;   ///< the run is finished
  std::vector<std::string> checkpoints;
};

QUATRAIN_API RunParts parts_of(const std::filesystem::path& run_folder);

}  // namespace quatrain::train
