#include <torch/types.h>

#include <cstdio>
#include <optional>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/figures.h"
#include "cli/load_while_telling.h"
#include "cli/recipe_files.h"
#include "cli/run_folder.h"
#include "cli/stop.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/checkpoint.h"
#include "quatrain/train/progress.h"
#include "quatrain/train/trainer.h"
#include "support/shell_word.h"
#include "train/checkpoint.h"
#include "train/run_files.h"
#include "train/run_lock.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;

void print_result(const train::Result& result, const tasks::Recipe& recipe, const fs::path& folder) {
  Table table;
  table.row({"parameters", grouped(result.parameters)});
  table.row({"model file", bytes(static_cast<double>(result.model_bytes))});
  table.row({"best step", grouped(result.best_step) + " of " + grouped(result.steps)});
  add_figures(table, result.dev, result.test, recipe);
  if (result.skipped > 0) table.row({"skipped steps", grouped(result.skipped)});
  table.row({"training time", fixed(result.seconds, 1) + " s"});
  std::printf("%s\nThe run is in %s. %s", table.text().c_str(), folder.c_str(),
              next_steps(recipe, folder, result.dev, result.test).c_str());
}

// A resumed run that began with another's weights has that one's vocabulary, and what else goes with them; or
// its vocabulary is that of a file. Either may be gone or another now, but the run's own checkpoints have it.
fs::path vocabulary_of(const tasks::Recipe& recipe, const fs::path& folder, const std::string& from) {
  if (!recipe.weights.empty() || !tasks::find_value(recipe, "vocabulary.file").value_or("").empty())
    for (const std::string& which : {from, std::string("best")})
      if (train::has_checkpoint(folder, which)) return train::find_checkpoint(folder, which);
  return {};
}

// True of a folder itself, too.
bool lies_in(const std::string& path, const fs::path& folder) {
  if (path.empty() || folder.empty()) return false;
  const fs::path relative =
      fs::weakly_canonical(fs::absolute(path)).lexically_relative(fs::weakly_canonical(fs::absolute(folder)));
  return !relative.empty() && *relative.begin() != "..";
}

}  // namespace

int train_command(const TrainArguments& arguments) {
  // Before its files are read, which its trainer replaces, and before data are prepared.
  train::refuse_training(arguments.resume && arguments.out.empty() ? arguments.recipe : arguments.out);
  const RecipeFile file = find_recipe(arguments.recipe, arguments.from);
  const tasks::Recipe recipe = read_one(file, arguments, arguments.twin);
  if (arguments.from != "last" && arguments.from != "last.old" && !arguments.from.starts_with("step-"))
    throw tasks::RecipeError(
        "--from must name a checkpoint that training can continue from, last or an older one such as "
        "step-000120, got '" +
        arguments.from + "'");
  if (!arguments.out.empty()) refuse_inside_checkpoint(arguments.out);
  fs::path folder = arguments.out;
  if (folder.empty() && arguments.resume) folder = file.folder;
  if (arguments.resume && arguments.out.empty() && (file.folder.empty() || !train::holds_run(folder)))
    throw tasks::RecipeError(
        "--resume needs the folder of the run to continue: quatrain train RUN --resume, or --out RUN" +
        (file.folder.empty() ? std::string()
                             : "; '" + folder.string() +
                                   "' contains no run (to continue a comparison, use quatrain compare)"));
  if (!folder.empty() && !arguments.resume && !arguments.overwrite && train::holds_run(folder))
    throw tasks::RecipeError(
        "'" + folder.string() +
        "' already contains a run: pass --resume to continue it, --overwrite to replace it, or another "
        "--out");
  if (const fs::path file = train::answers_of_none(folder); !arguments.overwrite && !file.empty())
    throw tasks::RecipeError("'" + file.string() +
                             "' is no run's, and a run in this folder may replace it: move it away, pass "
                             "--overwrite to replace it, or choose another --out");
  if (arguments.overwrite && lies_in(recipe.weights, folder))
    throw tasks::RecipeError("--overwrite would replace the run '" + folder.string() +
                             "' that training starts from (train.weights): pass another --out");

  const train::Session session(recipe.train.device);
  tasks::set_threads(recipe);
  tasks::DataRequest request{.folder = arguments.data};
  if (arguments.resume) request.vocabulary = vocabulary_of(recipe, folder, arguments.from);
  request.resumes = !request.vocabulary.empty();
  const auto data = load_while_telling(recipe, request);
  const bool begun = arguments.resume && check_resumable(data->recipe(), folder, arguments.from);
  // The weights of a checkpoint are newer than those to start from.
  const auto task = tasks::make_task(data->recipe(), *data, !begun);
  watch_for_stop();
  std::optional<FreshFolder> fresh;
  if (folder.empty()) folder = fresh.emplace(file.name, arguments.twin).path();
  train::RunOptions run;
  run.folder = folder;
  run.existing = arguments.resume      ? train::Existing::resume
                 : arguments.overwrite ? train::Existing::overwrite
                                       : train::Existing::refuse;
  run.from = arguments.from;
  run.stop = &stop_requested();
  print_notes(data->notes());
  print_notes(tasks::notes_of_missing_sets(*data));
  const auto algebra = tasks::find_value(recipe, "model.algebra");
  std::fprintf(stderr, "training %s%s into %s\n", file.name.c_str(),
               algebra ? (" (" + *algebra + ")").c_str() : "", folder.c_str());
  train::Result result;
  bool trains = false;
  {
    train::ProgressLine line;
    run.on_progress = [&](const train::Progress& progress) { trains = true, line.show(progress); };
    run.on_message = run.on_sample = [&](const std::string& text) { line.message(text); };
    result = train::Trainer(*task, data->recipe().train, run, session).run();
  }
  if (!result.finished) {
    std::fprintf(stderr, "stopped at step %s; continue with: quatrain train %s --resume\n",
                 grouped(result.steps).c_str(), shell_word(folder).c_str());
    throw Stopped{};
  }
  if (!trains)
    print_note("nothing is left to train: the run ended at step " + grouped(result.steps) +
               (result.stopped_early ? ", stopped early (train.patience says when; 0: never)"
                                     : " (train.steps and train.epochs say how long it is)"));
  print_result(result, recipe, folder);
  return kSuccess;
}

}  // namespace quatrain::cli
