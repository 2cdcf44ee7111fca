#include <ATen/Parallel.h>

#include <algorithm>

#include "bench/model.h"
#include "cli/bench_run.h"
#include "cli/commands.h"
#include "cli/recipe_files.h"
#include "cli/run_folder.h"
#include "cli/text_calls.h"
#include "quatrain/nn/factorize.h"
#include "quatrain/nn/parameters.h"
#include "support/numbers.h"

namespace quatrain::cli {
namespace {

/// The twins to measure, the real one first: the recipe's first over the reals, or one made of the recipe. A
/// recipe without twins is measured itself.
std::vector<train::Recipe> twins_beside_real(const train::Recipe& recipe) {
  std::vector<train::Recipe> twins;
  for (const auto& twin : recipe.twins) twins.push_back(train::twin_recipe(recipe, twin));
  if (twins.empty()) {
    twins.push_back(recipe);
    twins.back().name = recipe.model.algebra;
  }
  const auto is_real = [](const train::Recipe& twin) { return twin.model.algebra == "real"; };
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

bench::ModelCalls calls_of(const train::Recipe& twin, const TextData& data, const bench::ModelPass& pass,
                           int64_t count) {
  auto model = make_model(twin, data.vocabulary, static_cast<int64_t>(data.splits.labels.size()));
  bench::ModelCalls calls;
  calls.parameters = nn::parameter_report(*model).total;
  if (pass.training) {
    calls.next = training_call(twin, data, count);
    calls.batches = count;
    calls.units = [=, &data] { return training_words(twin, data, count); };
    return calls;
  }
  model->eval();
  nn::factorize(*model);
  const auto batches =
      std::make_shared<const std::vector<data::Batch>>(test_batches(twin, data, pass.batch, count));
  calls.next = inference_call(twin, model, batches);
  calls.batches = static_cast<int64_t>(batches->size());
  calls.units = [batches] { return words_in(*batches); };
  return calls;
}

}  // namespace

int bench_model_command(const BenchModelArguments& arguments) {
  const train::Recipe recipe = read_with_settings(find_recipe(arguments.recipe), arguments);
  set_threads(recipe);
  const TextData data = load_text(recipe, arguments.data);
  auto asked = data.recipe;  // with the reader and the tokenizer that the data settled
  asked.twins = recipe.twins;
  std::vector<bench::ModelTwin> twins;
  for (const auto& twin : twins_beside_real(asked))
    twins.push_back(
        {.name = twin.name,
         .said = {bench::hidden("algebra", twin.model.algebra), bench::hidden("scope", twin.model.scope),
                  bench::hidden("dtype", twin.train.precision)},
         .make = [twin, &data](const bench::ModelPass& pass, int64_t count) {
           return calls_of(twin, data, pass, count);
         }});
  const std::vector<bench::ModelPass> passes{{true, asked.train.batch}, {false, 32}, {false, 1}};
  const int threads = at::get_num_threads();
  bench::Subject subject = bench::models(twins, passes, threads, "word", arguments.seconds);
  subject.title = recipe.name + ", fresh models, " + counted(threads, "thread");
  return run_bench(subject, arguments.json);
}

}  // namespace quatrain::cli
