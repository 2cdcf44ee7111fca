#include "cli/bench_model.h"

#include <torch/torch.h>

#include "cli/peak_memory.h"
#include "cli/text_calls.h"
#include "quatrain/nn/factorize.h"
#include "quatrain/nn/parameters.h"

namespace quatrain::cli {
namespace {

constexpr int64_t kBatches = 4;  // of a call: lengths differ from batch to batch

bool is_real(const train::Recipe& recipe) {
  return recipe.model.algebra == "real";
}

models::TextClassifier ready_model(const train::Recipe& twin, const TextData& data) {
  auto model = make_model(twin, data.vocabulary, static_cast<int64_t>(data.splits.labels.size()));
  model->eval();
  nn::factorize(*model);
  return model;
}

}  // namespace

std::vector<ModelPass> model_passes(const train::Recipe& recipe) {
  return {{true, recipe.train.batch}, {false, 32}, {false, 1}};
}

std::vector<train::Recipe> twins_beside_real(const train::Recipe& recipe) {
  std::vector<train::Recipe> twins;
  for (const auto& twin : recipe.twins) twins.push_back(train::twin_recipe(recipe, twin));
  if (twins.empty()) {
    twins.push_back(recipe);
    twins.back().name = recipe.model.algebra;
  }
  const auto real = std::find_if(twins.begin(), twins.end(), is_real);
  if (real == twins.end()) {
    train::Recipe made = twins.front();
    made.name = made.model.algebra = "real";
    twins.insert(twins.begin(), made);
  } else {
    std::rotate(twins.begin(), real, real + 1);
  }
  return twins;
}

int64_t model_memory(const train::Recipe& twin, const TextData& data, const ModelPass& pass) {
  return peak_memory([&] {
    if (pass.training) return training_call(twin, data, 1);
    auto batches = std::make_shared<const std::vector<data::Batch>>(test_batches(twin, data, pass.batch, 1));
    return inference_call(twin, ready_model(twin, data), std::move(batches));
  });
}

std::vector<ModelResult> measure_models(const std::vector<train::Recipe>& twins, const TextData& data,
                                        const ModelPass& pass, double seconds) {
  std::shared_ptr<const std::vector<data::Batch>> batches;
  if (!pass.training)
    batches = std::make_shared<const std::vector<data::Batch>>(
        test_batches(twins.front(), data, pass.batch, kBatches));
  std::vector<ModelResult> results;
  std::vector<std::function<void()>> calls;
  for (const auto& twin : twins) {
    ModelResult result;
    result.recipe = twin;
    result.training = pass.training;
    result.batch = pass.batch;
    const auto model = ready_model(twin, data);
    result.parameters = nn::parameter_report(*model).total;
    result.words = pass.training ? training_words(twin, data, kBatches) : words_in(*batches);
    auto call = pass.training ? training_call(twin, data, kBatches) : inference_call(twin, model, batches);
    if (!pass.training) {
      const int64_t without = ops::prepared_size().bytes;
      call();
      result.prepared = ops::prepared_size().bytes - without;
    }
    result.batches = pass.training ? kBatches : static_cast<int64_t>(batches->size());
    calls.emplace_back([call, count = result.batches] {
      for (int64_t i = 0; i < count; ++i) call();
    });
    results.push_back(std::move(result));
  }
  TimingOptions timing;
  timing.seconds = seconds;
  const auto times = interleaved(calls, timing);
  for (size_t i = 0; i < results.size(); ++i) results[i].time = times[i], results[i].real = times[0];
  return results;
}

}  // namespace quatrain::cli
