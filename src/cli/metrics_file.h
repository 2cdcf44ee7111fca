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
};

/// Reads the metrics of a run; a line that is none, or that goes back in time, is a std::runtime_error that
/// names it.
MetricsFile read_metrics(const std::filesystem::path& run);

}  // namespace quatrain::cli
