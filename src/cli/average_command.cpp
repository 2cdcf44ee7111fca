#include <torch/types.h>

#include <algorithm>
#include <cstdio>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/figures.h"
#include "cli/load_while_telling.h"
#include "cli/run_folder.h"
#include "cli/stop.h"
#include "quatrain/nn/algebra_spec.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/session.h"
#include "train/average.h"
#include "train/run_lock.h"
#include "train/state.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;

// A run's recipe, which says where training on the mean would start.
std::string recipe_of(const tasks::Data& data, const fs::path& out) {
  tasks::Recipe recipe = data.recipe();
  recipe.weights = fs::absolute(out).lexically_normal().string();
  return tasks::to_toml(recipe);
}

// The checkpoints that are asked for, of those that the run keeps.
std::vector<train::Checkpoint> chosen(const std::vector<train::Checkpoint>& kept,
                                      const AverageArguments& arguments, const tasks::Recipe& recipe) {
  if (arguments.best == 0) return kept;
  return train::best_of(kept, arguments.best, recipe.selecting().higher_is_better);
}

std::string steps_of(const std::vector<train::Checkpoint>& checkpoints) {
  std::string text = counted(static_cast<int64_t>(checkpoints.size()), "checkpoint") + ", of steps ";
  for (const auto& one : checkpoints)
    text += (&one == &checkpoints.front()  ? ""
             : &one == &checkpoints.back() ? " and "
                                           : ", ") +
            grouped(one.step);
  return text;
}

// What has to be known of the mean before its figures are read.
std::vector<std::string> notes(const AverageArguments& arguments, const std::vector<train::Checkpoint>& kept,
                               const tasks::Recipe& recipe) {
  std::vector<std::string> all;
  const auto found = static_cast<int64_t>(kept.size()), asked = std::max(arguments.last, arguments.best);
  if (found < asked)
    all.push_back("the run keeps " + counted(found, "checkpoint") + ", not " + std::to_string(asked) +
                  ": train.keep says how many");
  const auto between =
      std::count_if(kept.begin(), kept.end(), [](const auto& one) { return !train::dev_figure(one); });
  if (arguments.best > 0 && between > 0)
    all.push_back(counted(between, "checkpoint") +
                  " without an evaluation at its step, left out: train.checkpoint_every = 0 saves at "
                  "evaluations alone");
  const auto algebra = tasks::find_value(recipe, "model.algebra");
  if (algebra && nn::AlgebraSpec(*algebra).learned)
    all.push_back("the algebra " + *algebra +
                  " is learned, and a layer is its product with the weights: their means give the mean of "
                  "the layers only where the checkpoints are close, so compare the dev set's figures");
  return all;
}

}  // namespace

int average_command(const AverageArguments& arguments) {
  if (!fs::is_directory(arguments.run))
    throw UsageError("average: '" + arguments.run + "' is not a run: name the folder of a run");
  refuse_inside_checkpoint(arguments.out);
  if (fs::exists(arguments.out))
    throw UsageError("average: '" + arguments.out + "' exists already: choose another --out");
  const train::Session session(arguments.device);
  train::refuse_training(arguments.run);
  const auto kept = train::checkpoints_to_average(arguments.run, arguments.last);
  const std::shared_ptr<tasks::Model> model = tasks::load_checkpoint(kept.back().folder);
  const auto checkpoints = chosen(kept, arguments, model->recipe());
  const auto& newest = checkpoints.back();
  session.move(model->module());
  tasks::set_threads(model->recipe());
  const auto data = load_while_telling(model->recipe(), {arguments.data, "", model.get()});
  print_notes(data->notes());
  print_notes(notes(arguments, kept, model->recipe()));
  const auto task = data->make_task(model);
  watch_for_stop();
  train::AverageOptions options;
  options.folder = arguments.out;
  options.recipe = recipe_of(*data, arguments.out);
  options.bf16 = model->recipe().train.bf16;
  options.seed = model->recipe().train.seed;
  options.best = arguments.best > 0;
  options.after_batch = throw_if_stopped;
  std::fprintf(stderr, "averaging %s of %s into %s\n", steps_of(checkpoints).c_str(), arguments.run.c_str(),
               arguments.out.c_str());
  const train::Result result = train::write_average(*task, checkpoints, options);

  const tasks::Recipe& recipe = model->recipe();
  const train::State state = train::read_state(newest.folder);
  Table table;
  table.row({"mean of", steps_of(checkpoints) +
                            (arguments.best > 0 ? ": the best of " + std::to_string(kept.size()) : "")});
  table.row({"parameters", grouped(result.parameters)});
  if (state.best_figures.contains(recipe.selecting().name))
    table.row(
        {"dev " + recipe.selecting().title + ", run's best", shown(recipe.selecting(), state.best_figures)});
  add_figures(table, result.dev, result.test, recipe);
  std::printf("%s\nThe mean is in %s. %s", table.text().c_str(), arguments.out.c_str(),
              next_steps(recipe, arguments.out, result.dev, result.test).c_str());
  return kSuccess;
}

}  // namespace quatrain::cli
