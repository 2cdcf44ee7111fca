#include <torch/types.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/metrics_file.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/checkpoint.h"
#include "quatrain/train/optimizer.h"
#include "quatrain/train/trainer.h"
#include "support/shell_word.h"
#include "support/text.h"
#include "train/checkpoint.h"
#include "train/checksum.h"
#include "train/finite.h"
#include "train/records.h"
#include "train/run_files.h"
#include "train/sentence.h"
#include "train/state.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;

// Looks at one thing after the other and goes on where one is damaged.
class Checks {
 public:
  explicit Checks(fs::path run) : run_(std::move(run)) {}

  // `look` says what it saw; what it throws is the damage. While a run trains, its trainer may replace what
  // is looked at: that is looked at again, and an older checkpoint may be gone by then.
  void make(const std::string& what, const std::function<std::string()>& look) {
    std::string found;
    bool sound = false;
    for (int tries = 5; tries > 0 && !sound; --tries) {
      try {
        found = "sound: " + look();
        sound = true;
      } catch (const std::exception& error) {
        found = train::sentence_of(error);
        if (!train::is_training(run_)) break;
        if (!fs::exists(run_ / what) && !must_be_there(what)) return;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    }
    damaged_ += !sound;
    table_.row({what, printable(found)});
  }

  std::string text() const { return table_.text(); }
  int damaged() const { return damaged_; }

 private:
  bool must_be_there(const std::string& checkpoint) const {
    const auto names = train::parts_of(run_).checkpoints;
    return std::find(names.begin(), names.end(), checkpoint) != names.end();
  }

  fs::path run_;
  Table table_{"ll"};
  int damaged_ = 0;
};

// The files as they were written, then what is in them.
std::string look_at_checkpoint(const fs::path& run, const std::string& name, bool accept) {
  const bool changed = accept && fs::exists(run / name) && !train::find_damage(run / name).empty();
  const fs::path folder = changed ? run / name : train::find_checkpoint(run, name);
  const auto model = tasks::load_checkpoint(folder);
  const tasks::Recipe& recipe = model->recipe();
  if (const std::string why = train::foreign(folder); !why.empty()) throw std::runtime_error("it " + why);
  const auto parameters = train::trained_parameters(model->module());
  int64_t numbers = 0;
  if (const std::string what = train::first_not_finite(model->module()); !what.empty())
    throw std::runtime_error("the " + what + " are not finite");
  for (const auto& [parameter, values] : parameters) numbers += values.numel();
  std::string text = grouped(numbers) + " parameters";
  if (const auto algebra = tasks::find_value(recipe, "model.algebra")) text += " of " + *algebra;
  int64_t step = train::step_of(folder);
  if (name == "best" && train::is_average(run)) text += ", a mean of checkpoints";
  if (name != "best") {
    const auto optimizer = train::make_optimizer(recipe.train.optimizer, model->module());
    const train::State state = train::load_state({}, *optimizer, parameters, folder);
    step = state.step;
    if (name == "last" && state.best_step > 0 && !train::has_checkpoint(run, "best"))
      throw std::runtime_error("the best weights so far, 'best', are missing; resuming the run " +
                               std::string(fs::exists(run / train::kResultFile)
                                               ? "without its result.json selects them again"
                                               : "selects them again"));
    text += std::string(", ") + train::name(recipe.train.optimizer.kind) + ", step " + grouped(step);
  }
  if (!changed) return text + (train::has_other_weights(folder) ? "; its weights were accepted" : "");
  train::seal_checkpoint(folder, step, train::run_of(folder),
                         name == "best" ? train::selected_weights(folder) : "");
  // A wrong name is no change that can be accepted.
  if (const auto left = train::find_damage(folder, train::Look::sizes); !left.empty())
    throw std::runtime_error(join(left));
  return text + "; changed, and accepted as it is";
}

// What files of older versions lack.
constexpr const char* kUnsealed = " without a checksum, of an older version";

// After it no line is missed.
constexpr const char* kLost =
    " cannot be made again, and neither the model nor its figures need them: resume the run, which goes on "
    "without them";

std::string look_at_metrics(const fs::path& run) {
  const fs::path last = run / "last";
  const int64_t expected =
      fs::exists(last) && train::find_damage(last).empty() ? train::read_state(last).metrics_lines : 0;
  const fs::path path = run / train::kMetricsFile;
  if (!fs::exists(path)) throw std::runtime_error("'" + path.string() + "' is missing: its lines" + kLost);
  const MetricsFile metrics = read_metrics(run);
  if (!metrics.damage.empty()) throw std::runtime_error(metrics.damage.front());
  std::string text = counted(metrics.lines, "line");
  if (metrics.lines < expected)
    throw std::runtime_error(text + " where the checkpoint 'last' had " + grouped(expected) +
                             ": some were deleted or lost, which" + kLost);
  if (metrics.unsealed > 0) text += ", " + grouped(metrics.unsealed) + " of them" + kUnsealed;
  return text;
}

// True where training has come to its end: then there is a result, or it is missing.
bool is_trained(const fs::path& run) {
  const fs::path last = run / "last";
  if (train::is_training(run) || !fs::exists(last) || !train::find_damage(last).empty()) return false;
  try {
    const train::State state = train::read_state(last);
    const auto recipe = tasks::read_recipe((last / "recipe.toml").string());
    return state.stopped_early || state.step >= train::steps_of(recipe.train, state.steps_per_epoch);
  } catch (const std::exception&) {
    return false;  // of a kind, or an algebra, that is not known here
  }
}

std::string look_at_result(const fs::path& run, bool accept) {
  if (!fs::exists(run / train::kResultFile) && train::has_other_weights(run / "best"))
    throw std::runtime_error("missing, and its best weights were accepted later: quatrain evaluate " +
                             shell_word(run) + " scores them");
  if (!fs::exists(run / train::kResultFile))
    throw std::runtime_error("missing, though 'last' is of the final step: quatrain train " +
                             shell_word(run) + " --resume scores the test set and makes it again");
  train::Result result = accept ? train::read_any_result(run) : train::read_result(run);
  std::string text = "finished after " + counted(result.steps, "step");
  if (!train::result_is_sealed(run)) return text + "," + kUnsealed;
  if (!train::is_of_other_weights(result.weights, run)) return text;
  result.weights = train::weights_checksum(run, "best");
  train::write_result(result, run);
  return text + "; of other weights, and accepted as it is";
}

// True where a run of this kind leaves predictions, and where its kind cannot be read.
bool has_answers(const fs::path& run) {
  try {
    return tasks::read_recipe((run / "best" / "recipe.toml").string()).about().answers;
  } catch (const std::exception&) {
    return true;
  }
}

std::string look_at_predictions(const fs::path& run, const train::Result& result) {
  if (result.test.empty()) return "none, without a test set";
  const fs::path path = run / train::kPredictionsFile;
  const bool sealed = !result.predictions.empty();
  if (!fs::exists(path)) throw std::runtime_error(train::damage_of_scored(path));
  std::ifstream file = open_named(path);
  std::string line;
  std::getline(file, line);
  bool good = line == "target\tprediction";
  int64_t count = 0;
  for (int64_t target = 0, answer = 0; std::getline(file, line); ++count) {
    std::istringstream words(line);
    good = good && words >> target >> answer && words.eof();
  }
  const auto expected = result.test.find("count");
  good = good && (expected == result.test.end() || expected->second == static_cast<double>(count));
  if (!good || (sealed && train::checksum_of_file(path) != result.predictions))
    throw std::runtime_error(train::damage_of_scored(path));
  std::string text = grouped(count) + " answers";
  if (!sealed) text.append(",").append(kUnsealed);  // + is taken by g++ 12 for a write out of bounds
  return text;
}

std::string look_at_counts(const fs::path& run, const train::Result& result, const std::string& figure) {
  const auto counts = train::read_counts(result, figure, run);
  return counted(static_cast<int64_t>(counts.examples.size()), "example");
}

std::string look_at_file(const fs::path& file, const std::string& checksum) {
  if (!fs::exists(file) || train::checksum_of_file(file) != checksum)
    throw std::runtime_error(train::damage_of_scored(file));
  return "as it was written";
}

// A run's result, empty where it cannot be read, which is told elsewhere.
train::Result readable_result(const fs::path& run) {
  try {
    return train::read_result(run);
  } catch (const std::exception&) {
    return {};
  }
}

}  // namespace

int check_command(const CheckArguments& arguments) {
  const fs::path run = arguments.run;
  if (!fs::is_directory(run) || !train::holds_run(run))
    throw UsageError("check: '" + arguments.run + "' is not a run: name the folder of a run");
  if (arguments.accept && train::is_training(run))
    throw std::runtime_error("check: '" + arguments.run +
                             "' is being trained, which would replace what is accepted: stop it first");
  Checks checks(run);
  const train::RunParts parts = train::parts_of(run);
  for (const auto& name : parts.checkpoints)
    checks.make(name, [&] { return look_at_checkpoint(run, name, arguments.accept); });
  if (parts.metrics) checks.make(train::kMetricsFile, [&] { return look_at_metrics(run); });
  if (parts.result || is_trained(run)) {
    checks.make(train::kResultFile, [&] { return look_at_result(run, arguments.accept); });
    if (parts.result && has_answers(run))
      checks.make(train::kPredictionsFile, [&] { return look_at_predictions(run, train::read_result(run)); });
    const train::Result result = readable_result(run);
    for (const auto& [figure, checksum] : result.counts)
      checks.make(train::counts_file(figure), [&] { return look_at_counts(run, result, figure); });
    for (const auto& [name, checksum] : result.files)
      checks.make(name, [&] { return look_at_file(run / name, checksum); });
  }
  if (fs::exists(run / train::kShortlistFile) && train::find_damage(run / "best").empty())
    checks.make(train::kShortlistFile, [&] {
      if (tasks::read_recipe((run / "best" / "recipe.toml").string()).about().name != "seq2seq")
        return std::string("of no use to this kind of task");
      tasks::load_run(run, {tasks::Setting::parse("decode.shortlist=true")});
      return std::string("of the run's pieces");
    });
  std::fputs(checks.text().c_str(), stdout);
  if (checks.damaged() == 0) return kSuccess;
  throw std::runtime_error("'" + arguments.run + "' is not as a trainer left it in " +
                           counted(checks.damaged(), "part") + "; the table says what can be done");
}

}  // namespace quatrain::cli
