#include "cli/text_calls.h"

#include <torch/torch.h>

#include "train/autocast.h"

namespace quatrain::cli {
namespace {

bool in_bfloat16(const train::Recipe& recipe) {
  return recipe.train.precision == "bfloat16";
}

std::vector<data::Batch> batches_of(const std::vector<data::Example>& examples, const train::Recipe& recipe,
                                    const TextData& data, const data::LoaderOptions& options, int64_t count) {
  data::Loader loader(data::encode(examples, data.splits.tokenizer, data.vocabulary, recipe.task.max_length),
                      options);
  std::vector<data::Batch> batches;
  for (int64_t i = 0; i < std::min(count, loader.batches()); ++i) batches.push_back(loader.batch(0, i));
  return batches;
}

struct Step {
  train::Recipe recipe;
  int64_t count = 0;
  std::unique_ptr<train::TextClassification> task;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  int64_t next = 0;

  void operator()() {
    optimizer->zero_grad();
    train::BatchLoss batch;
    {
      const train::Autocast autocast(in_bfloat16(recipe));
      batch = task->loss(0, next++ % std::min(count, task->batches()));
    }
    batch.loss.backward();
    if (recipe.train.clip > 0) {
      const auto parameters = task->model().parameters();
      torch::nn::utils::clip_grad_norm_(parameters, recipe.train.clip);
    }
    optimizer->step();
  }
};

}  // namespace

std::vector<data::Batch> test_batches(const train::Recipe& recipe, const TextData& data, int64_t size,
                                      int64_t count) {
  const auto& examples = data.splits.test.empty() ? data.splits.dev : data.splits.test;
  data::LoaderOptions options;
  options.batch_size = std::min<int64_t>(size, static_cast<int64_t>(examples.size()));
  return batches_of(examples, recipe, data, options, count);
}

int64_t words_in(const std::vector<data::Batch>& batches) {
  int64_t words = 0;
  for (const auto& batch : batches) words += batch.padding.numel() - batch.padding.sum().item<int64_t>();
  return words;
}

std::function<void()> inference_call(const train::Recipe& recipe, models::TextClassifier model,
                                     std::shared_ptr<const std::vector<data::Batch>> batches) {
  return [bfloat16 = in_bfloat16(recipe), model, batches, next = size_t{0}]() mutable {
    const torch::NoGradGuard no_grad;
    const train::Autocast autocast(bfloat16);
    const auto& batch = (*batches)[next++ % batches->size()];
    model->forward(batch.tokens, batch.padding);
  };
}

std::function<void()> training_call(const train::Recipe& recipe, const TextData& data, int64_t count) {
  auto task = make_task(recipe, data);
  task->model().train();
  auto optimizer = train::make_optimizer(trainer_options(recipe).optimizer, task->model());
  const auto step = std::make_shared<Step>(Step{recipe, count, std::move(task), std::move(optimizer)});
  return [step] { (*step)(); };
}

int64_t training_words(const train::Recipe& recipe, const TextData& data, int64_t count) {
  data::LoaderOptions options;  // as TextClassification sets them
  options.batch_size = recipe.train.batch;
  options.seed = static_cast<uint64_t>(recipe.train.seed);
  return words_in(batches_of(data.splits.train, recipe, data, options, count));
}

}  // namespace quatrain::cli
