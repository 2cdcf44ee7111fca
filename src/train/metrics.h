#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "quatrain/train/task.h"

namespace quatrain::train {

/// How many lines a run's metrics.jsonl has; none where it is missing, or has a line that is not as it was
/// written.
QUATRAIN_API std::optional<int64_t> whole_lines(const std::filesystem::path& run_folder);

/// metrics.jsonl: a JSON object a line, each with its checksum, appended. A line is on its way to the disk
/// when the call returns; where it cannot be written (a full disk) it waits in memory and is tried again.
class QUATRAIN_API Metrics {
 public:
  /// Keeps the lines written up to the checkpoint that is resumed, up to `step` and of evaluations up to
  /// `evaluated_step` (a run may be stopped between the two), and drops later, torn and damaged ones. A
  /// training line is due each `log_every` steps; 0: never.
  Metrics(const std::filesystem::path& run_folder, int64_t step, int64_t evaluated_step, int64_t log_every);
  /// Of a run that has come to its end: keeps all lines but torn and damaged ones.
  explicit Metrics(const std::filesystem::path& run_folder);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// Whole lines that were not as a trainer had written them, and were dropped.
  int64_t damaged() const { return damaged_; }
  /// What to say of these, or of lines that are missing where a checkpoint had `expected`; empty: nothing.
  std::string losses(int64_t expected) const;
  /// Lines that are kept or were written.
  int64_t lines() const { return lines_; }

  /// True where training(step, ..) is to be called.
  bool due(int64_t step) const { return log_every_ > 0 && step % log_every_ == 0; }
  void training(int64_t step, int64_t epoch, double loss, double learning_rate, double gradient_norm,
                double examples_per_second);
  void evaluation(int64_t step, const std::string& split, const Figures& figures, double seconds);
  /// A step that changed nothing, because its `what` was not finite.
  void skipped(int64_t step, int64_t epoch, const std::string& what, const std::string& batch);

  /// Puts every line on the disk; a std::runtime_error where that fails.
  void sync();

 private:
  void append(const std::string& object);
  bool flush();

  std::filesystem::path path_;
  int64_t log_every_;
  int fd_ = -1;
  int64_t damaged_ = 0;
  int64_t lines_ = 0;
  int64_t size_ = 0;     // bytes of whole lines in the file
  std::string pending_;  // lines that are not in it yet
};

}  // namespace quatrain::train
