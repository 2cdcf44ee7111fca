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
  return task.evaluate(
      split, after_batch ? after_batch : [] {});
}

}  // namespace quatrain::train
