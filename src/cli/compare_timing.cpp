#include <torch/torch.h>

#include "cli/compare.h"
#include "cli/timing.h"
#include "quatrain/data/loader.h"
#include "train/autocast.h"

namespace quatrain::cli {
namespace {

constexpr int64_t kBatches = 16;  // different ones that take turns

// A third of the time for each of the three figures.
TimingOptions options_of(const Comparison& comparison) {
  return {.seconds = comparison.twins.front().recipe.compare.seconds / 3};
}

bool in_bfloat16(const Twin& twin) {
  return twin.recipe.train.precision == "bfloat16";
}

// Test texts (or those of the dev set) in batches of one size; every twin gets the same.
std::vector<data::Batch> test_batches(const train::Recipe& recipe, const TextData& data, int64_t size) {
  const auto& examples = data.splits.test.empty() ? data.splits.dev : data.splits.test;
  data::LoaderOptions options;
  options.batch_size = std::min<int64_t>(size, static_cast<int64_t>(examples.size()));
  data::Loader loader(data::encode(examples, data.splits.tokenizer, data.vocabulary, recipe.task.max_length),
                      options);
  std::vector<data::Batch> batches;
  for (int64_t i = 0; i < std::min(kBatches, loader.batches()); ++i) batches.push_back(loader.batch(0, i));
  return batches;
}

std::vector<Timing> inference(const Comparison& comparison, const TextData& data, int64_t size,
                              std::vector<models::TextClassifier>& models) {
  const auto batches = test_batches(comparison.twins.front().recipe, data, size);
  std::vector<std::function<void()>> calls;
  for (size_t i = 0; i < models.size(); ++i)
    calls.push_back([&, i, next = size_t{0}]() mutable {
      const torch::NoGradGuard no_grad;
      const train::Autocast autocast(in_bfloat16(comparison.twins[i]));
      const auto& batch = batches[next++ % batches.size()];
      models[i]->forward(batch.tokens, batch.padding);
    });
  return interleaved(calls, options_of(comparison));
}

// What Trainer does in a step, without its records.
struct Step {
  const Twin* twin;
  std::unique_ptr<train::TextClassification> task;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  int64_t next = 0;

  void operator()() {
    optimizer->zero_grad();
    train::BatchLoss batch;
    {
      const train::Autocast autocast(in_bfloat16(*twin));
      batch = task->loss(0, next++ % task->batches());
    }
    batch.loss.backward();
    if (twin->recipe.train.clip > 0) {
      const auto parameters = task->model().parameters();
      torch::nn::utils::clip_grad_norm_(parameters, twin->recipe.train.clip);
    }
    optimizer->step();
  }
};

std::vector<Timing> training(const Comparison& comparison, const TextData& data) {
  std::vector<Step> steps;
  for (const auto& twin : comparison.twins) {
    auto task = make_task(twin.recipe, data);
    task->model().train();
    auto optimizer = train::make_optimizer(trainer_options(twin.recipe).optimizer,
                                           train::trained_parameters(task->model()));
    steps.push_back({&twin, std::move(task), std::move(optimizer)});
  }
  std::vector<std::function<void()>> calls;
  for (auto& step : steps) calls.push_back([&step] { step(); });
  return interleaved(calls, options_of(comparison));
}

}  // namespace

void measure_twins(Comparison& comparison, const TextData& data) {
  std::vector<models::TextClassifier> models;
  for (const auto& twin : comparison.twins) models.push_back(load_trained(twin.runs.front().folder).model);
  const auto one = inference(comparison, data, 1, models), many = inference(comparison, data, 32, models);
  const auto steps = training(comparison, data);
  for (size_t i = 0; i < comparison.twins.size(); ++i)
    comparison.twins[i].times = {steps[i].median, one[i].median, many[i].median};
}

}  // namespace quatrain::cli
