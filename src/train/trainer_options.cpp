#include "train/trainer_options.h"

#include <c10/util/StringUtil.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "support/enum_names.h"
#include "train/checkpoint.h"
#include "train/run_files.h"

namespace quatrain::train {
namespace {

constexpr EnumNames<NonFinite, 2> kNonFinite{{{NonFinite::stop, "stop"}, {NonFinite::skip, "skip"}}};

}  // namespace

const char* name(NonFinite choice) {
  return name_of(kNonFinite, choice);
}

NonFinite parse_nonfinite(std::string_view name) {
  return parse_name(kNonFinite, "nonfinite", name);
}

int64_t steps_of(const TrainerOptions& options, int64_t steps_per_epoch) {
  int64_t steps = options.steps;
  if (options.epochs > 0 && __builtin_mul_overflow(options.epochs, steps_per_epoch, &steps))
    steps = std::numeric_limits<int64_t>::max();
  return options.steps > 0 ? std::min(steps, options.steps) : steps;
}

void refuse_existing(const RunOptions& run) {
  if (run.existing == Existing::overwrite) return;
  if (holds_run(run.folder)) {
    if (run.existing == Existing::resume) return;
    throw std::runtime_error("'" + run.folder.string() +
                             "' already contains a run: resume it, overwrite it, or choose another folder");
  }
  if (const auto file = answers_of_none(run.folder); !file.empty())
    throw std::runtime_error(
        "'" + file.string() +
        "' is no run's, and a run in this folder may replace it: move it away, overwrite "
        "it, or choose another folder");
}

void check(const TrainerOptions& options, const RunOptions& run, const Task& task) {
  const auto require = [](bool condition, const char* rule, auto value) {
    if (!condition) throw std::invalid_argument(c10::str("train: ", rule, ", got ", value));
  };
  const OptimizerOptions& o = options.optimizer;
  const ScheduleOptions& s = options.schedule;
  require(!run.folder.empty(), "the run needs a folder", "none");
  require(options.steps >= 0, "steps must not be negative", options.steps);
  require(options.epochs >= 0, "epochs must not be negative", options.epochs);
  require(options.steps > 0 || options.epochs > 0, "steps or epochs must say when to stop", "neither");
  require(options.accumulate >= 1, "accumulate must be at least 1", options.accumulate);
  require(options.clip >= 0, "clip must not be negative", options.clip);
  require(options.evaluate_every >= 0, "evaluate_every must not be negative", options.evaluate_every);
  require(options.checkpoint_every >= 0, "checkpoint_every must not be negative", options.checkpoint_every);
  require(options.keep >= 1, "keep must be at least 1", options.keep);
  require(options.log_every >= 0, "log_every must not be negative", options.log_every);
  require(options.patience >= 0, "patience must not be negative", options.patience);
  require(std::isfinite(o.learning_rate) && o.learning_rate > 0, "learning_rate must be above 0",
          o.learning_rate);
  require(o.weight_decay >= 0, "weight_decay must not be negative", o.weight_decay);
  require(o.beta1 >= 0 && o.beta1 < 1, "beta1 must be in [0, 1)", o.beta1);
  require(o.beta2 >= 0 && o.beta2 < 1, "beta2 must be in [0, 1)", o.beta2);
  require(o.epsilon > 0, "epsilon must be above 0", o.epsilon);
  require(o.momentum >= 0, "momentum must not be negative", o.momentum);
  require(s.warmup >= 0, "warmup must not be negative", s.warmup);
  require(s.warmup_share >= 0 && s.warmup_share <= 1, "warmup_share must be in [0, 1]", s.warmup_share);
  require(s.factor > 0 && s.factor <= 1, "the schedule's factor must be in (0, 1]", s.factor);
  require(s.every >= 0, "the schedule's every must not be negative", s.every);
  require(s.patience >= 0, "the schedule's patience must not be negative", s.patience);
  require(s.floor >= 0 && s.floor <= 1, "the schedule's floor must be in [0, 1]", s.floor);
  require(task.has("dev") || (options.patience == 0 && s.kind != ScheduleKind::plateau),
          "patience and the plateau schedule need a dev set", "none");
  require(task.batches() >= 1, "the training set must have a batch", task.batches());
}

}  // namespace quatrain::train
