#include <torch/torch.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/recipe_files.h"
#include "cli/run_folder.h"
#include "cli/stop.h"
#include "cli/text_task.h"
#include "quatrain/train/checkpoint.h"
#include "quatrain/train/progress.h"
#include "train/run_lock.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;

void print_result(const train::Result& result, const fs::path& folder) {
  Table table;
  table.row({"parameters", grouped(result.parameters)});
  table.row({"model file", bytes(static_cast<double>(result.model_bytes))});
  table.row({"best step", grouped(result.best_step) + " of " + grouped(result.steps)});
  for (const auto& [name, figures] : {std::pair{"dev", &result.dev}, std::pair{"test", &result.test}})
    if (const auto found = figures->find("accuracy"); found != figures->end())
      table.row({std::string(name) + " accuracy", percent(found->second, 2)});
  if (const auto found = result.test.find("majority"); found != result.test.end())
    table.row({"majority class", percent(found->second, 2)});
  if (result.skipped > 0) table.row({"skipped steps", grouped(result.skipped)});
  table.row({"training time", fixed(result.seconds, 1) + " s"});
  std::printf("%s\nThe run is in %s. Next:\n  quatrain predict %s\n  quatrain evaluate %s\n",
              table.text().c_str(), folder.c_str(), folder.c_str(), folder.c_str());
}

}  // namespace

int train_command(const TrainArguments& arguments) {
  if (arguments.resume) train::refuse_training(arguments.out.empty() ? arguments.recipe : arguments.out);
  const RecipeFile file = find_recipe(arguments.recipe, arguments.from);
  train::Recipe recipe = read_with_settings(file, arguments);
  if (!arguments.twin.empty()) recipe = train::twin_recipe(recipe, train::find_twin(recipe, arguments.twin));
  recipe.twins.clear();
  if (arguments.from != "last" && !arguments.from.starts_with("step-"))
    throw train::RecipeError(
        "--from takes a checkpoint to go on from, last or an older one such as step-000120, got '" +
        arguments.from + "'");
  fs::path folder = arguments.out;
  if (folder.empty())
    folder = arguments.resume && !file.folder.empty() ? file.folder : fresh_folder(file.name, arguments.twin);
  if (arguments.resume && arguments.out.empty() && (file.folder.empty() || !train::holds_run(folder)))
    throw train::RecipeError(
        "--resume needs the run to go on with: quatrain train RUN --resume, or --out RUN" +
        (file.folder.empty()
             ? std::string()
             : "; '" + folder.string() + "' holds none (a comparison goes on with quatrain compare)"));
  if (!arguments.resume && !arguments.overwrite && train::holds_run(folder))
    throw train::RecipeError(
        "'" + folder.string() +
        "' holds a run already: pass --resume to go on, --overwrite to start anew, or another "
        "--out");

  const train::Session session(recipe.train.device);
  set_threads(recipe);
  const TextData data = load_text(recipe, arguments.data);
  train::Recipe start = data.recipe;
  if (arguments.resume && check_resumable(data.recipe, folder, arguments.from))
    start.train.weights.clear();  // the checkpoint's are newer
  const auto task = make_task(
      data.recipe, data, make_model(start, data.vocabulary, static_cast<int64_t>(data.splits.labels.size())));
  watch_for_stop();
  train::RunOptions run;
  run.folder = folder;
  run.existing = arguments.resume      ? train::Existing::resume
                 : arguments.overwrite ? train::Existing::overwrite
                                       : train::Existing::refuse;
  run.from = arguments.from;
  run.stop = &stop_requested();
  std::fprintf(stderr, "training %s (%s) into %s\n", file.name.c_str(), recipe.model.algebra.c_str(),
               folder.c_str());
  train::Result result;
  {
    train::ProgressLine line;
    run.on_progress = [&](const train::Progress& progress) { line.show(progress); };
    run.on_message = [&](const std::string& text) { line.message(text); };
    result = train::Trainer(*task, trainer_options(data.recipe), run, session).run();
  }
  if (!result.finished) {
    std::fprintf(stderr, "stopped at step %s; go on with: quatrain train %s --resume\n",
                 grouped(result.steps).c_str(), folder.c_str());
    throw Stopped{};
  }
  print_result(result, folder);
  return kSuccess;
}

}  // namespace quatrain::cli
