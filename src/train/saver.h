#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "quatrain/nn/safetensors.h"
#include "quatrain/train/task.h"
#include "train/metrics.h"

namespace quatrain::train {

/// Writes a run's checkpoints, and lets training continue where one cannot be written.
class Saver {
 public:
  using Fill = std::function<void(const std::filesystem::path&)>;

  /// `run` is the name of the run, which each checkpoint notes. `saved_step` is that of the checkpoint the
  /// run goes on from, -1 without one; `tell` gets a sentence for each step whose checkpoints cannot be
  /// written and without which training `continues`: else the run ends with a sentence of its own.
  Saver(Task& task, Metrics& metrics, std::filesystem::path run_folder, std::string run, int64_t keep,
        int64_t saved_step, std::function<void(const std::string&)> tell);

  /// The model as it stands becomes the best checkpoint. Where that fails, its weights are kept in memory and
  /// tried again with the next checkpoint.
  void best(int64_t step, bool continues);
  /// Writes the checkpoint to resume from; `fill` adds the files that this needs. It is written after the
  /// lines of the metrics and the best checkpoint that it speaks of, or not at all: false.
  bool last(int64_t step, const Fill& fill, bool continues);

  /// Step of the last checkpoint on the disk; -1: none.
  int64_t saved_step() const { return saved_step_; }
  /// What to say of it, in an error: where it is and that it stays.
  std::string kept() const;
  /// Why the latest checkpoint could not be written.
  const std::string& failure() const { return failure_; }

 private:
  struct Best {
    int64_t step;
    nn::Safetensors weights;
    nn::NamedTensors structures;
  };

  bool write_best(int64_t step, bool continues);
  bool attempt(int64_t step, bool continues, const std::function<void()>& write);

  Task& task_;
  Metrics& metrics_;
  std::filesystem::path folder_;
  std::string run_;
  int64_t keep_;
  std::function<void(const std::string&)> tell_;
  std::optional<Best> unsaved_best_;
  int64_t saved_step_, told_step_ = -1;
  std::string failure_;
};

}  // namespace quatrain::train
