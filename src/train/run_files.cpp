#include "train/run_files.h"

#include "train/checkpoint.h"

namespace quatrain::train {

namespace fs = std::filesystem;

RunParts parts_of(const fs::path& run_folder) {
  RunParts parts;
  parts.result = fs::exists(run_folder / kResultFile);
  parts.metrics = parts.result || has_checkpoint(run_folder) || fs::exists(run_folder / kMetricsFile);
  if (!parts.metrics || parts.result || has_checkpoint(run_folder, "best"))
    parts.checkpoints.push_back("best");
  if (parts.metrics) parts.checkpoints.push_back("last");
  for (const fs::path& folder : older_checkpoints(run_folder))
    parts.checkpoints.push_back(folder.filename().string());
  return parts;
}

}  // namespace quatrain::train
