#pragma once

#include <cstdint>
#include <optional>

#include "quatrain/train/optimizer.h"
#include "quatrain/train/task.h"
#include "quatrain/train/trainer.h"

/// A step up to its optimizer.
namespace quatrain::train {

/// What a step's gradients came from.
struct Gradients {
  double loss_sum = 0;  ///< over the examples
  int64_t examples = 0;
  double norm = 0;  ///< of the gradients, before they were bounded

  /// What is not finite; the weights are not to be changed then.
  struct Problem {
    const char* what;  ///< "loss", "gradient"
    double value;
    int64_t batch;  ///< where it was seen
  };
  std::optional<Problem> problem;
};

/// Leaves in the parameters the gradients of the mean loss over all examples of some batches of an epoch,
/// bounded by `options.clip`.
Gradients make_gradients(Task& task, const TrainerOptions& options, at::DeviceType device,
                         const NamedParameters& parameters, int64_t epoch, int64_t first_batch,
                         int64_t last_batch);

}  // namespace quatrain::train
