#include "train/score.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "quatrain/train/session.h"
#include "train/autocast.h"

namespace quatrain::train {

Evaluation score(Task& task, std::string_view split, bool bf16, const std::function<void()>& after_batch) {
  const torch::NoGradGuard no_grad;
  const Autocast autocast(bf16, device_of(task.model()).type());
  task.model().eval();
  Evaluation evaluation = task.evaluate(
      split, after_batch ? after_batch : [] {});
  TORCH_CHECK(evaluation.predictions.size() <= evaluation.targets.size(),
              "train: the task's evaluation must have a target for each prediction, got ",
              evaluation.predictions.size(), " predictions and ", evaluation.targets.size(),
              " targets of the ", split, " set");
  return evaluation;
}

}  // namespace quatrain::train
