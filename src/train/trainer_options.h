#pragma once

#include "quatrain/train/trainer.h"

namespace quatrain::train {

/// Throws std::invalid_argument with a sentence where an option is out of range or does not go with the task.
void check(const TrainerOptions& options, const RunOptions& run, const Task& task);

/// A std::runtime_error where a run in this folder would replace what is there, and was not told to.
void refuse_existing(const RunOptions& run);

}  // namespace quatrain::train
