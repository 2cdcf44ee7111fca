#include <ATen/Parallel.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

#include "bench/model.h"
#include "cli/bench_run.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/load_while_telling.h"
#include "cli/recipe_files.h"
#include "cli/run_folder.h"
#include "quatrain/nn/factorize.h"
#include "quatrain/nn/parameters.h"
#include "quatrain/tasks/run.h"
#include "support/numbers.h"
#include "tasks/calls.h"

namespace quatrain::cli {
namespace {

std::string value_of(const tasks::Recipe& recipe, const char* key) {
  return tasks::find_value(recipe, key).value_or("");
}

/// The twins to measure, the real one first: the recipe's first over the reals, or one made of the recipe. A
/// recipe without twins is measured itself.
std::vector<tasks::Recipe> twins_beside_real(const tasks::Recipe& recipe) {
  constexpr const char* kAlgebra = "model.algebra";
  std::vector<tasks::Recipe> twins;
  for (const auto& twin : recipe.twins) twins.push_back(tasks::twin_recipe(recipe, twin));
  if (twins.empty()) {
    twins.push_back(recipe);
    twins.back().name = value_of(recipe, kAlgebra);
  }
  const auto is_real = [&](const tasks::Recipe& twin) { return value_of(twin, kAlgebra) == "real"; };
  const auto real = std::find_if(twins.begin(), twins.end(), is_real);
  if (real == twins.end()) {
    tasks::Recipe made = twins.front();
    made.name = "real";
    tasks::apply(made, {kAlgebra, "real", "bench model"});
    twins.insert(twins.begin(), made);
  } else {
    std::rotate(twins.begin(), real, real + 1);
  }
  return twins;
}

bench::ModelCalls calls_of(const tasks::Recipe& twin, const tasks::Data& data, const bench::ModelPass& pass,
                           int64_t count) {
  using Inputs = std::vector<tasks::Input>;
  std::shared_ptr<tasks::Model> model = tasks::make_model(twin, data);
  bench::ModelCalls calls;
  calls.parameters = nn::parameter_report(model->module()).total;
  if (pass.training) {
    calls.next = tasks::training_call(twin, data, count);
    calls.batches = count;
    calls.units = [=, &data] { return tasks::units_in(data.inputs("train", twin, twin.batch, count)); };
    return calls;
  }
  model->module().eval();
  nn::factorize(model->module());
  const auto inputs = std::make_shared<const Inputs>(tasks::test_inputs(twin, data, pass.batch, count));
  calls.next = tasks::inference_call(model, inputs);
  calls.batches = static_cast<int64_t>(inputs->size());
  calls.units = [inputs] { return tasks::units_in(*inputs); };
  return calls;
}

}  // namespace

int bench_model_command(const BenchModelArguments& arguments) {
  tasks::Recipe recipe = read_with_twins(find_recipe(arguments.recipe), arguments);
  recipe.weights.clear();  // which would fit one twin, if they are still there
  tasks::set_threads(recipe);
  const auto data = load_while_telling(recipe, {.folder = arguments.data});
  auto asked = data->recipe();  // with the reader and the tokenizer that the data settled
  asked.twins = recipe.twins;
  std::vector<bench::ModelTwin> twins;
  for (const auto& twin : twins_beside_real(asked))
    twins.push_back({.name = twin.name,
                     .said = {bench::hidden("algebra", value_of(twin, "model.algebra")),
                              bench::hidden("scope", value_of(twin, "model.scope")),
                              bench::hidden("dtype", twin.train.bf16 ? "bfloat16" : "float32")},
                     .make = [twin, &data](const bench::ModelPass& pass, int64_t count) {
                       return calls_of(twin, *data, pass, count);
                     }});
  std::vector<bench::ModelPass> passes{{true, asked.batch}};
  for (const int64_t batch : arguments.batches) passes.push_back({false, batch});
  const int threads = at::get_num_threads();
  bench::Subject subject = bench::models(twins, passes, threads, recipe.about().unit, arguments.seconds);
  subject.title = recipe.name + ", fresh models, " + counted(threads, "thread");
  return run_bench(subject, arguments.json);
}

}  // namespace quatrain::cli
