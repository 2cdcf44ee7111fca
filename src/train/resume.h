#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "quatrain/train/optimizer.h"
#include "quatrain/train/trainer.h"
#include "train/state.h"

namespace quatrain::train {

/// The state in which a run begins or continues.
struct Start {
  State state;
  int64_t saved_step = -1;       ///< of the checkpoint it goes on from; -1: it begins
  std::string run;               ///< the name that its checkpoints have for it; "" where none has one
  bool best_is_gone = false;     ///< the weights at hand are the best ones, and best/ does not hold them
  std::optional<Result> result;  ///< of a run that has nothing left to do; the model has its best weights
};

/// What take_up() needs.
struct Resumed {
  Task& task;
  const TrainerOptions& options;
  const RunOptions& run;
  const Session& session;
  torch::optim::Optimizer& optimizer;
  const NamedParameters& parameters;
  int64_t steps;  ///< of the whole run
  int64_t steps_per_epoch;
  std::function<void(const std::string&)> tell;
};

/// Takes up what the run's folder holds: weights, moments, generator and state of the checkpoint to resume
/// from. Without a checkpoint the run begins, with the seed's generator. Checkpoints of other data are
/// refused, and a folder whose run could only be started again or that has checkpoints of several runs.
///
/// Selection continues from best/ where that is still as the state says. Else (it is damaged, deleted, or of
/// a later step than the older checkpoint that is resumed) the next evaluation selects new ones.
Start take_up(const Resumed& resumed);

}  // namespace quatrain::train
