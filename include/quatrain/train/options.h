#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "quatrain/api.h"
#include "quatrain/train/schedule.h"

/// How to train, as plain numbers and words: nothing here knows torch.
namespace quatrain::train {

/// "adam", "adamw", "sgd", "adagrad", "rmsprop".
enum class OptimizerKind { adam, adamw, sgd, adagrad, rmsprop };

QUATRAIN_API const char* name(OptimizerKind kind);
/// The inverse; an unknown name is an error that lists the known ones.
QUATRAIN_API OptimizerKind parse_optimizer(std::string_view name);

/// Options of an optimizer. Each is torch::optim's own.
struct QUATRAIN_API OptimizerOptions {
  OptimizerKind kind = OptimizerKind::adam;
  double learning_rate = 1e-3;
  double weight_decay = 0;
  bool decay_all = false;  ///< on all parameters; else on weights alone: nn::decaying_parameters
  double beta1 = 0.9;      ///< adam, adamw
  double beta2 = 0.999;    ///< adam, adamw, rmsprop (there torch calls it alpha)
  double epsilon = 1e-8;   ///< all but sgd
  double momentum = 0;     ///< sgd, rmsprop
};

/// What to do with a step whose loss or gradient is not finite: "stop" the run, or "skip" the step, which
/// then changes no weight and is counted.
enum class NonFinite { stop, skip };

QUATRAIN_API const char* name(NonFinite choice);
/// The inverse; an unknown name is an error that lists the known ones.
QUATRAIN_API NonFinite parse_nonfinite(std::string_view name);

/// How to train. Zero means "none" or "never" where nothing else is said.
struct QUATRAIN_API TrainerOptions {
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  int64_t steps = 0;             ///< optimizer steps; 0: as many as `epochs` give. With both, the fewer.
  int64_t epochs = 0;            ///< passes over the training set
  int64_t accumulate = 1;        ///< batches a step: gradients of their mean over examples
  double clip = 0;               ///< largest gradient norm
  bool bf16 = false;             ///< autocast to bfloat16; the weights stay as they are
  int64_t evaluate_every = 0;    ///< steps; 0: after each epoch. The last step is always evaluated.
  int64_t patience = 0;          ///< evaluations in a row without a better figure, after which training stops
  int64_t checkpoint_every = 0;  ///< steps; a checkpoint is also written at each evaluation
  int64_t keep = 1;              ///< how many of the latest checkpoints are kept
  int64_t log_every = 50;        ///< steps between training lines of metrics.jsonl
  NonFinite nonfinite = NonFinite::stop;
  std::string device = "cpu";  ///< of the session to train in: "cpu", "cuda", "cuda:N"
  bool deterministic = false;  ///< operations of torch that have no deterministic form are errors
  uint64_t seed = 0;           ///< of torch's default generator (dropout) at the start of a fresh run
};

}  // namespace quatrain::train
