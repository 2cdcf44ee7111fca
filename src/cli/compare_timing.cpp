#include <limits>

#include "bench/timing.h"
#include "cli/compare.h"
#include "cli/stop.h"
#include "quatrain/tasks/run.h"
#include "tasks/calls.h"

namespace quatrain::cli {
namespace {

constexpr int64_t kBatches = 16;  // different ones that take turns

// A third of the time for each of the three figures.
bench::TimingOptions options_of(const Comparison& comparison) {
  return {.seconds = comparison.twins.front().recipe.compare.seconds / 3, .between = throw_if_stopped};
}

std::vector<bench::Timing> inference(const Comparison& comparison, const tasks::Data& data, int64_t size,
                                     const std::vector<std::shared_ptr<tasks::Model>>& models) {
  std::vector<std::function<void()>> calls;
  for (const auto& model : models)  // pictures have other channels for other algebras
    calls.push_back(
        tasks::inference_call(model, std::make_shared<const std::vector<tasks::Input>>(
                                         tasks::test_inputs(model->recipe(), data, size, kBatches))));
  return bench::interleaved(calls, options_of(comparison));
}

std::vector<bench::Timing> training(const Comparison& comparison, const tasks::Data& data) {
  std::vector<std::function<void()>> calls;
  for (const auto& twin : comparison.twins)
    calls.push_back(tasks::training_call(twin.recipe, data, std::numeric_limits<int64_t>::max()));
  return bench::interleaved(calls, options_of(comparison));
}

}  // namespace

void measure_twins(Comparison& comparison, const tasks::Data& data) {
  std::vector<std::shared_ptr<tasks::Model>> models;
  for (const auto& twin : comparison.twins) models.push_back(tasks::load_run(twin.runs.front().folder));
  const auto one = inference(comparison, data, 1, models), many = inference(comparison, data, 32, models);
  const auto steps = training(comparison, data);
  for (size_t i = 0; i < comparison.twins.size(); ++i)
    comparison.twins[i].times = {steps[i].median, one[i].median, many[i].median};
}

}  // namespace quatrain::cli
