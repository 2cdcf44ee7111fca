#include <limits>

#include "bench/timing.h"
#include "cli/compare.h"
#include "cli/stop.h"
#include "cli/text_calls.h"

namespace quatrain::cli {
namespace {

constexpr int64_t kBatches = 16;  // different ones that take turns

// A third of the time for each of the three figures.
bench::TimingOptions options_of(const Comparison& comparison) {
  return {.seconds = comparison.twins.front().recipe.compare.seconds / 3, .between = throw_if_stopped};
}

std::vector<bench::Timing> inference(const Comparison& comparison, const TextData& data, int64_t size,
                                     const std::vector<models::TextClassifier>& models) {
  const auto batches = std::make_shared<const std::vector<data::Batch>>(
      test_batches(comparison.twins.front().recipe, data, size, kBatches));
  std::vector<std::function<void()>> calls;
  for (size_t i = 0; i < models.size(); ++i)
    calls.push_back(inference_call(comparison.twins[i].recipe, models[i], batches));
  return bench::interleaved(calls, options_of(comparison));
}

std::vector<bench::Timing> training(const Comparison& comparison, const TextData& data) {
  std::vector<std::function<void()>> calls;
  for (const auto& twin : comparison.twins)
    calls.push_back(training_call(twin.recipe, data, std::numeric_limits<int64_t>::max()));
  return bench::interleaved(calls, options_of(comparison));
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
