#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "quatrain/nn/safetensors.h"
#include "quatrain/train/checkpoint.h"
#include "quatrain/train/trainer.h"

/// The mean of a run's checkpoints, as a run of its own.
namespace quatrain::train {

/// The newest checkpoints of a run from which training could continue, `last` and step-N, at most `most` of
/// them (0: all), the oldest first. Fewer than two are an error, and so is a damaged one among them.
QUATRAIN_API std::vector<Checkpoint> checkpoints_to_average(const std::filesystem::path& run_folder,
                                                            int64_t most = 0);

/// Of a run's checkpoints, at most `most` with the best values of the figure that selects, the oldest first.
/// A checkpoint's own value is that of an evaluation at its step: those that were saved between two
/// evaluations have none and are left out. Of equal values the newer checkpoint is better. Fewer than two
/// that have one are an error.
QUATRAIN_API std::vector<Checkpoint> best_of(const std::vector<Checkpoint>& checkpoints, int64_t most,
                                             bool higher_is_better);

/// The value of the figure that selects at a checkpoint's step; none where it was not evaluated there.
QUATRAIN_API std::optional<double> dev_figure(const Checkpoint& checkpoint);

/// The mean of their weights: of each floating-point tensor, computed in float64 and kept in its own type.
/// Tensors of other types must be equal, and all else that says what the weights are too; but how many
/// batches a batch norm has seen is the last checkpoint's.
QUATRAIN_API nn::Safetensors mean_of_weights(const std::vector<Checkpoint>& checkpoints);

/// Where the mean is written.
struct QUATRAIN_API AverageOptions {
  std::filesystem::path folder;  ///< of the new run; it must not exist
  std::string recipe;            ///< recipe.toml of the new run
  bool bf16 = false;             ///< as in TrainerOptions
  uint64_t seed = 0;
  bool best = false;  ///< the checkpoints are the result of best_of(): average.json says so
  std::function<void()> after_batch = {};  ///< see Task::evaluate; what it throws leaves nothing behind
};

/// Loads the mean into the task's model, which is on its device, and scores the dev and the test set as a
/// trainer does. The new run has best/ with the mean and with average.json, which says of what, result.json
/// and the answers to the test set. It is written beside its place and renamed when it is whole.
QUATRAIN_API Result write_average(Task& task, const std::vector<Checkpoint>& checkpoints,
                                  const AverageOptions& options);

}  // namespace quatrain::train
