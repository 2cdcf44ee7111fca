#include "train/records.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "quatrain/train/checkpoint.h"
#include "support/atomic_file.h"
#include "train/own_json.h"
#include "train/run_files.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// JSON has no infinity and no NaN: they are null.
Figures figures_of(const Json& json) {
  Figures result;
  for (const auto& [name, value] : json.items())
    result[name] = value.is_null() ? std::nan("") : value.get<double>();
  return result;
}

}  // namespace

void write_result(const Result& r, const fs::path& run_folder) {
  const Json json{{"finished", r.finished},
                  {"stopped_early", r.stopped_early},
                  {"steps", r.steps},
                  {"best_step", r.best_step},
                  {"figure", r.figure},
                  {"dev", r.dev},
                  {"test", r.test},
                  {"facts", r.facts},
                  {"parameters", r.parameters},
                  {"model_bytes", r.model_bytes},
                  {"seconds", r.seconds},
                  {"step_seconds_median", r.step_seconds_median},
                  {"examples_per_second", r.examples_per_second},
                  {"skipped", r.skipped},
                  {"final_loss", r.final_loss},
                  {"threads", r.threads},
                  {"seed", r.seed},
                  {"version", r.version},
                  {"commit", r.commit},
                  {"predictions", r.predictions},
                  {"weights", r.weights}};
  write_text(run_folder / kResultFile, with_checksum(json.dump(2) + "\n"));
}

Result read_any_result(const fs::path& run_folder) {
  const fs::path path = run_folder / kResultFile;
  if (!fs::exists(path))
    throw std::runtime_error("run '" + run_folder.string() + "' has no result.json: it is not finished");
  try {
    const auto json = read_checked<Json>(path);
    Result r;
    json.at("finished").get_to(r.finished);
    json.at("stopped_early").get_to(r.stopped_early);
    json.at("steps").get_to(r.steps);
    json.at("best_step").get_to(r.best_step);
    r.dev = figures_of(json.at("dev"));
    r.test = figures_of(json.at("test"));
    r.facts = figures_of(json.at("facts"));
    json.at("parameters").get_to(r.parameters);
    json.at("model_bytes").get_to(r.model_bytes);
    json.at("seconds").get_to(r.seconds);
    json.at("step_seconds_median").get_to(r.step_seconds_median);
    json.at("examples_per_second").get_to(r.examples_per_second);
    json.at("skipped").get_to(r.skipped);
    json.at("final_loss").get_to(r.final_loss);
    json.at("threads").get_to(r.threads);
    json.at("seed").get_to(r.seed);
    r.figure = json.value("figure", "");  // older versions wrote none of these
    r.version = json.value("version", "");
    r.commit = json.value("commit", "");
    r.predictions = json.value("predictions", "");
    r.weights = json.value("weights", "");
    return r;
  } catch (const Json::exception&) {
    throw std::runtime_error(
        "'" + path.string() +
        "' is not what a trainer wrote: delete it and resume the run, which makes it again");
  }
}

bool is_of_other_weights(const std::string& weights, const fs::path& run_folder) {
  const std::string own = weights_checksum(run_folder, "best");
  return !weights.empty() && !own.empty() && weights != own;
}

Result read_result(const fs::path& run_folder) {
  Result result = read_any_result(run_folder);
  if (!is_of_other_weights(result.weights, run_folder)) return result;
  throw std::runtime_error("'" + (run_folder / kResultFile).string() +
                           "' is of other weights than those of 'best' beside it, another run's perhaps: "
                           "delete it and resume the run, which makes it again");
}

bool result_is_sealed(const fs::path& run_folder) {
  return holds_checksum(read_file(run_folder / kResultFile, kLargestOwn)).has_value();
}

std::string write_predictions(const Evaluation& evaluation, const fs::path& run_folder) {
  std::string text = "target\tprediction\n";
  for (size_t i = 0; i < evaluation.predictions.size(); ++i)
    text +=
        std::to_string(evaluation.targets.at(i)) + "\t" + std::to_string(evaluation.predictions[i]) + "\n";
  write_text(run_folder / kPredictionsFile, text);
  return checksum(text);
}

}  // namespace quatrain::train
