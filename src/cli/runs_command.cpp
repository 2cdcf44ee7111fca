#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/figures.h"
#include "cli/json_file.h"
#include "quatrain/train/checkpoint.h"
#include "support/atomic_folder.h"
#include "train/checkpoint.h"
#include "train/own_json.h"
#include "train/records.h"
#include "train/run_files.h"
#include "train/sentence.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kDeepest = 4;

// What was found, and a sentence for each thing that cannot be looked at.
struct Found {
  std::vector<fs::path> runs;
  std::vector<std::string> left_out, unfinished;
};

// The runs in a folder and below it; a run holds no others.
void find_runs(const fs::path& folder, int depth, Found& found) {
  std::error_code none;
  fs::directory_iterator entries;
  try {
    if (train::holds_run(folder)) {
      if (AtomicFolder::is_unfinished(folder))
        found.unfinished.push_back(
            "'" + folder.string() +
            "' is not whole: it is being written, or a process that was killed left it; "
            "delete it if no process writes it");
      else
        found.runs.push_back(folder);
      return;
    }
    if (depth == kDeepest) return;
    entries = fs::directory_iterator(folder);
  } catch (const fs::filesystem_error& error) {
    found.left_out.push_back(train::sentence_of(error));
    return;
  }
  for (; entries != fs::directory_iterator(); entries.increment(none))
    if (entries->is_directory(none))  // a link may lead to a run, but not round in circles
      find_runs(entries->path(), entries->is_symlink(none) ? kDeepest : depth + 1, found);
}

// What is known of a run, whatever of it is there. Its weights are not read: there may be hundreds of runs.
Json describe(const fs::path& run) {
  Json facts{{"run", run.string()}};
  const auto sound = train::sound_checkpoints(run, train::Look::sizes);
  const fs::path folder = run / (sound.empty() ? "best" : sound.front().name);
  try {
    const auto recipe = tasks::read_recipe((folder / "recipe.toml").string());
    facts["kind"] = recipe.about().name;
    if (const auto algebra = tasks::find_value(recipe, "model.algebra")) facts["algebra"] = *algebra;
    facts["seed"] = recipe.train.seed;
  } catch (const std::exception&) {
    facts["algebra"] = nullptr;  // not one that is known, or nothing is stored yet
  }
  const Json result = train::read_checked<Json>(run / train::kResultFile),
             state = train::read_own<Json>(folder / "training.json");
  const bool finished = result.is_object() && !train::is_of_other_weights(result.value("weights", ""), run);
  const bool lost = train::has_checkpoint(run) && (sound.empty() || sound.front().name.starts_with("step-"));
  const bool damaged = lost || (!finished && fs::exists(run / train::kResultFile));
  // First of all: a checkpoint that is being replaced may look damaged.
  facts["state"] = train::is_training(run) ? "training"
                   : damaged               ? "damaged"
                   : finished              ? "finished"
                                           : "stopped";
  const Json& from = finished ? result : state;
  if (from.is_object()) {
    facts["figure"] = from.value("figure", Json());
    facts["step"] = from.value(finished ? "steps" : "step", Json());
    facts["seconds"] = from.value("seconds", Json());
    facts["dev"] = from.value(finished ? "dev" : "best_figures", Json());
  }
  if (finished) {
    facts["parameters"] = result.value("parameters", Json());
    facts["test"] = result.value("test", Json());
  }
  // Of those there are no figures.
  if (train::has_other_weights(run / "best") || train::has_other_weights(run / "best.old")) {
    facts["other_weights"] = true;
    facts["dev"] = facts["test"] = Json();
  }
  return facts;
}

std::string cell(const Json& facts, const char* key) {
  const Json value = facts.value(key, Json());
  if (value.is_number_integer()) return grouped(value);
  if (value.is_string()) return printable(value);
  return "-";
}

// The figure that selects: as its kind shows it; of a kind that is not known here, by its name; of a run of
// an older version, which does not name it, the first.
std::string shown_of(const Json& facts, const char* split) {
  const Json figures = facts.value(split, Json()), selects = facts.value("figure", Json());
  if (!figures.is_object() || figures.empty()) return "-";
  const auto* about = tasks::find_about(facts.value("kind", ""));
  const std::string name = selects.is_string() && selects != "" ? selects.get<std::string>()
                           : about                              ? about->figures.front().name
                                                                : figures.begin().key();
  const Json value = figures.value(name, Json());
  if (!value.is_number()) return "-";
  if (about && name != "loss")
    for (const auto& figure : about->figures)
      if (figure.name == name) return shown(figure, value.get<double>());
  return printable(name) + " " + fixed(value.get<double>(), 4);
}

std::string duration(const Json& facts) {
  const Json value = facts.value("seconds", Json());
  return value.is_number() ? seconds(value) : "-";
}

}  // namespace

int runs_command(const RunsArguments& arguments) {
  check_output(arguments.json);
  if (!fs::is_directory(arguments.folder))
    throw UsageError("runs: there is no folder '" + arguments.folder + "': name the one your runs are in");
  Found found;
  find_runs(fs::path(arguments.folder).lexically_normal(), 0, found);
  std::sort(found.runs.begin(), found.runs.end());
  Json all = Json::array();
  for (const auto& folder : found.runs) {
    try {
      all.push_back(describe(folder));
    } catch (const std::exception& error) {
      found.left_out.push_back(train::sentence_of(error));
    }
  }
  if (all.empty() && !found.left_out.empty()) throw std::runtime_error(found.left_out.front());
  found.left_out.insert(found.left_out.end(), found.unfinished.begin(), found.unfinished.end());
  for (const auto& sentence : found.left_out)
    std::fprintf(stderr, "left out: %s\n", printable(sentence).c_str());
  if (!arguments.json.empty()) write_json(all, arguments.json);
  if (arguments.json == "-") return kSuccess;
  if (all.empty()) {
    std::printf("There is no run in '%s'.\n", arguments.folder.c_str());
    return kSuccess;
  }
  Table table("lllrrrrr");
  table.row({"run", "state", "algebra", "parameters", "step", "dev", "test", "time"});
  for (const auto& run : all)
    table.row({cell(run, "run"), cell(run, "state"), cell(run, "algebra"), cell(run, "parameters"),
               cell(run, "step"), shown_of(run, "dev"), shown_of(run, "test"), duration(run)});
  std::fputs(table.text().c_str(), stdout);
  return kSuccess;
}

}  // namespace quatrain::cli
