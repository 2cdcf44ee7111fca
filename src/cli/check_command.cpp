#include <torch/torch.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/metrics_file.h"
#include "cli/text_task.h"
#include "quatrain/train/checkpoint.h"
#include "train/checkpoint.h"
#include "train/sentence.h"
#include "train/state.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGood = "sound";

// Looks at one thing after the other and goes on where one is damaged.
class Checks {
 public:
  // `look` says what it saw; what it throws is the damage.
  void make(const std::string& what, const std::function<std::string()>& look) {
    std::string found;
    try {
      found = std::string(kGood) + ": " + look();
    } catch (const std::exception& error) {
      found = train::sentence_of(error);
    }
    damaged_ += !found.starts_with(kGood);
    table_.row({what, found});
  }

  std::string text() const { return table_.text(); }
  int damaged() const { return damaged_; }

 private:
  Table table_{"ll"};
  int damaged_ = 0;
};

// The files as they were written, then what is in them.
std::string look_at_checkpoint(const fs::path& run, const std::string& name, bool accept) {
  const bool changed = accept && !train::find_damage(run / name).empty();
  const fs::path folder = changed ? run / name : train::find_checkpoint(run, name);
  TrainedText trained = load_checkpoint(folder);
  const auto parameters = train::trained_parameters(*trained.model);
  int64_t numbers = 0;
  for (const auto& [parameter, values] : parameters) {
    if (!values.isfinite().all().item<bool>())
      throw std::runtime_error("the weights '" + parameter + "' are not finite");
    numbers += values.numel();
  }
  std::string text = grouped(numbers) + " parameters of " + trained.recipe.model.algebra;
  int64_t step = train::step_of(folder);
  if (name != "best") {
    const auto optimizer = train::make_optimizer(trainer_options(trained.recipe).optimizer, parameters);
    step = train::load_state(*optimizer, parameters, folder).step;
    text += ", " + trained.recipe.train.optimizer + ", step " + grouped(step);
  }
  if (!changed) return text;
  train::seal_checkpoint(folder, step);
  return text + "; changed, and accepted as it is";
}

std::string look_at_predictions(const fs::path& path, const train::Result& result) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  bool good = line == "target\tprediction";
  int64_t count = 0;
  for (int64_t target = 0, answer = 0; std::getline(file, line); ++count) {
    std::istringstream words(line);
    good = good && words >> target >> answer && words.eof();
  }
  const auto expected = result.test.find("count");
  if (!good || (expected != result.test.end() && expected->second != static_cast<double>(count)))
    throw std::runtime_error("'" + path.string() + "' is not what a trainer wrote: evaluate the run again");
  return grouped(count) + " answers";
}

}  // namespace

int check_command(const CheckArguments& arguments) {
  const fs::path run = arguments.run;
  if (!fs::is_directory(run) || !train::holds_run(run))
    throw UsageError("check: '" + arguments.run + "' is no run: name a run's folder");
  Checks checks;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(run)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && (name == "best" || name == "last" || name.starts_with("step-")))
      names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  for (const auto& name : names)
    checks.make(name, [&] { return look_at_checkpoint(run, name, arguments.accept); });
  if (fs::exists(run / "metrics.jsonl"))
    checks.make("metrics.jsonl", [&] { return counted(read_metrics(run).lines, "line"); });
  if (fs::exists(run / "result.json")) {
    checks.make("result.json",
                [&] { return "finished after " + counted(train::read_result(run).steps, "step"); });
    if (fs::exists(run / "predictions.tsv"))
      checks.make("predictions.tsv",
                  [&] { return look_at_predictions(run / "predictions.tsv", train::read_result(run)); });
  }
  std::fputs(checks.text().c_str(), stdout);
  if (checks.damaged() == 0) return kSuccess;
  throw std::runtime_error("'" + arguments.run + "' is not as a trainer left it in " +
                           counted(checks.damaged(), "part") + "; the table says what can be done");
}

}  // namespace quatrain::cli
