#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace quatrain::cli {

/// A figure over steps.
struct Curve {
  std::vector<int64_t> steps;
  std::vector<double> values;  ///< what is no number is NaN
};

/// What a metrics.jsonl holds.
struct MetricsFile {
  Curve loss;                        ///< of training
  std::map<std::string, Curve> dev;  ///< by figure
  int64_t lines = 0;
  int64_t unsealed = 0;             ///< of them without a checksum: older versions wrote none
  std::vector<std::string> damage;  ///< a sentence for each line that is left out
};

/// Reads the metrics of a run. A line that has changed since it was written, or that goes back in time, is
/// left out.
MetricsFile read_metrics(const std::filesystem::path& run);

}  // namespace quatrain::cli
