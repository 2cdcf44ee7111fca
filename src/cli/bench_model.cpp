#include "cli/bench_model.h"

#include <torch/torch.h>

#include "cli/peak_memory.h"
#include "quatrain/nn/factorize.h"
#include "quatrain/nn/parameters.h"
#include "quatrain/ops.h"
#include "quatrain/tasks/run.h"
#include "tasks/calls.h"

namespace quatrain::cli {
namespace {

constexpr int64_t kBatches = 4;  // of a call: lengths differ from batch to batch

std::string algebra_of(const tasks::Recipe& recipe) {
  return tasks::find_value(recipe, "model.algebra").value_or("real");
}

bool is_real(const tasks::Recipe& recipe) {
  return algebra_of(recipe) == "real";
}

std::shared_ptr<tasks::Model> ready_model(const tasks::Recipe& twin, const tasks::Data& data) {
  std::shared_ptr<tasks::Model> model = tasks::make_model(twin, data);
  model->module().eval();
  nn::factorize(model->module());
  return model;
}

using Inputs = std::vector<tasks::Input>;

}  // namespace

std::vector<ModelPass> model_passes(const tasks::Recipe& recipe) {
  return {{true, recipe.batch}, {false, 32}, {false, 1}};
}

std::vector<tasks::Recipe> twins_beside_real(const tasks::Recipe& recipe) {
  std::vector<tasks::Recipe> twins;
  for (const auto& twin : recipe.twins) twins.push_back(tasks::twin_recipe(recipe, twin));
  if (twins.empty()) {
    twins.push_back(recipe);
    twins.back().name = algebra_of(recipe);
  }
  const auto real = std::find_if(twins.begin(), twins.end(), is_real);
  if (real == twins.end()) {
    tasks::Recipe made = twins.front();
    made.name = "real";
    tasks::apply(made, {"model.algebra", "real", "bench model"});
    twins.insert(twins.begin(), made);
  } else {
    std::rotate(twins.begin(), real, real + 1);
  }
  return twins;
}

int64_t model_memory(const tasks::Recipe& twin, const tasks::Data& data, const ModelPass& pass) {
  return peak_memory([&] {
    if (pass.training) return tasks::training_call(twin, data, 1);
    auto inputs = std::make_shared<const Inputs>(tasks::test_inputs(twin, data, pass.batch, 1));
    return tasks::inference_call(ready_model(twin, data), std::move(inputs));
  });
}

std::vector<ModelResult> measure_models(const std::vector<tasks::Recipe>& twins, const tasks::Data& data,
                                        const ModelPass& pass, double seconds) {
  std::shared_ptr<const Inputs> inputs;
  if (!pass.training)
    inputs = std::make_shared<const Inputs>(tasks::test_inputs(twins.front(), data, pass.batch, kBatches));
  std::vector<ModelResult> results;
  std::vector<std::function<void()>> calls;
  for (const auto& twin : twins) {
    ModelResult result;
    result.recipe = twin;
    result.training = pass.training;
    result.batch = pass.batch;
    const auto model = ready_model(twin, data);
    result.parameters = nn::parameter_report(model->module()).total;
    result.units =
        tasks::units_in(pass.training ? data.inputs("train", twin, twin.batch, kBatches) : *inputs);
    auto call =
        pass.training ? tasks::training_call(twin, data, kBatches) : tasks::inference_call(model, inputs);
    if (!pass.training) {
      const int64_t without = ops::prepared_size().bytes;
      call();
      result.prepared = ops::prepared_size().bytes - without;
    }
    result.batches = pass.training ? kBatches : static_cast<int64_t>(inputs->size());
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
