#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "quatrain/train/task.h"
#include "quatrain/train/trainer.h"

namespace quatrain::train {

/// metrics.jsonl: a JSON object a line, appended. A line is on its way to the disk when the call returns.
class Metrics {
 public:
  /// Keeps the lines that the checkpoint to go on from has made, up to `step` and of evaluations up to
  /// `evaluated_step` (a run may be stopped between the two), and drops later and torn ones.
  Metrics(const std::filesystem::path& run_folder, int64_t step, int64_t evaluated_step);

  void training(int64_t step, int64_t epoch, double loss, double learning_rate, double gradient_norm,
                double examples_per_second);
  void evaluation(int64_t step, const std::string& split, const Figures& figures, double seconds);

 private:
  void append(const std::string& line);

  std::filesystem::path path_;
  std::ofstream file_;
};

/// Writes result.json.
void write_result(const Result& result, const std::filesystem::path& run_folder);

/// Writes predictions.tsv: target and answer of each example, in the data's order.
void write_predictions(const Evaluation& evaluation, const std::filesystem::path& run_folder);

}  // namespace quatrain::train
