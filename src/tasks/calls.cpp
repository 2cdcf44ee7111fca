#include "tasks/calls.h"

#include <torch/nn/utils/clip_grad.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "quatrain/tasks/run.h"
#include "quatrain/train/optimizer.h"
#include "train/autocast.h"

namespace quatrain::tasks {
namespace {

struct Step {
  train::TrainerOptions options;
  int64_t count = 0;
  std::unique_ptr<train::Task> task;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  int64_t next = 0;

  void operator()() {
    optimizer->zero_grad();
    train::BatchLoss batch;
    {
      const train::Autocast autocast(options.bf16);
      batch = task->loss(0, next++ % std::min(count, task->batches()));
    }
    batch.loss.backward();
    if (options.clip > 0) {
      const auto parameters = task->model().parameters();
      torch::nn::utils::clip_grad_norm_(parameters, options.clip);
    }
    optimizer->step();
  }
};

}  // namespace

std::vector<Input> test_inputs(const Recipe& recipe, const Data& data, int64_t size, int64_t count) {
  return data.inputs(data.has("test") ? "test" : "dev", recipe, size, count);
}

std::function<void()> inference_call(std::shared_ptr<Model> model,
                                     std::shared_ptr<const std::vector<Input>> inputs) {
  return [model = std::move(model), inputs = std::move(inputs), next = size_t{0}]() mutable {
    const torch::NoGradGuard no_grad;
    const train::Autocast autocast(model->recipe().train.bf16);
    model->forward((*inputs)[next++ % inputs->size()].tensors);
  };
}

std::function<void()> training_call(const Recipe& recipe, const Data& data, int64_t count) {
  auto task = make_task(recipe, data);
  task->model().train();
  auto optimizer = train::make_optimizer(recipe.train.optimizer, task->model());
  const auto step = std::make_shared<Step>(Step{recipe.train, count, std::move(task), std::move(optimizer)});
  return [step] { (*step)(); };
}

int64_t units_in(const std::vector<Input>& inputs) {
  int64_t units = 0;
  for (const Input& input : inputs) units += input.units;
  return units;
}

}  // namespace quatrain::tasks
