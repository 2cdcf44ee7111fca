#include "train/gradients.h"

#include <torch/nn/utils/clip_grad.h>
#include <torch/types.h>

#include <cmath>
#include <limits>
#include <vector>

#include "train/autocast.h"

namespace quatrain::train {
namespace {

// Makes the gradients those of the mean over all examples and bounds them; their norm before that.
double clip(const NamedParameters& parameters, const TrainerOptions& options, int64_t examples) {
  std::vector<at::Tensor> trained;
  for (const auto& [name, parameter] : parameters) {
    if (options.accumulate > 1 && parameter.grad().defined())
      parameter.mutable_grad().div_(static_cast<double>(examples));
    trained.push_back(parameter);
  }
  return torch::nn::utils::clip_grad_norm_(
      trained, options.clip > 0 ? options.clip : std::numeric_limits<double>::infinity());
}

}  // namespace

Gradients make_gradients(Task& task, const TrainerOptions& options, at::DeviceType device,
                         const NamedParameters& parameters, int64_t epoch, int64_t first_batch,
                         int64_t last_batch) {
  Gradients made;
  for (int64_t index = first_batch; index < last_batch; ++index) {
    BatchLoss batch;
    {
      const Autocast autocast(options.bf16, device);
      batch = task.loss(epoch, index);
    }
    TORCH_CHECK(batch.examples > 0, "train: the task's loss must be of one example or more, got ",
                batch.examples, " for batch ", index, " of epoch ", epoch);
    const double loss = batch.loss.item<double>();
    if (!std::isfinite(loss)) {
      made.problem = {"loss", loss, index};
      return made;
    }
    // Means of unequal batches weigh by their examples; a single one is left as it is.
    const auto weight = static_cast<double>(batch.examples);
    (options.accumulate > 1 ? batch.loss * weight : batch.loss).backward();
    made.loss_sum += loss * weight;
    made.examples += batch.examples;
  }
  made.norm = clip(parameters, options, made.examples);
  if (!std::isfinite(made.norm)) made.problem = {"gradient", made.norm, first_batch};
  return made;
}

}  // namespace quatrain::train
