#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "quatrain/api.h"

/// What a run's folder holds beside its checkpoints, and what of all that has to be there.
namespace quatrain::train {

inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kResultFile = "result.json";
inline constexpr const char* kPredictionsFile = "predictions.tsv";

/// What has to be in a run's folder, as far as the run has come; it may be missing.
struct QUATRAIN_API RunParts {
  bool metrics = false;  ///< a trainer has begun; a converted run has best/ alone
  bool result = false;   ///< the run is finished
  std::vector<std::string> checkpoints;
};

QUATRAIN_API RunParts parts_of(const std::filesystem::path& run_folder);

}  // namespace quatrain::train
