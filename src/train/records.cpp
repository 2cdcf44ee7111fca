#include "train/records.h"

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "quatrain/train/checkpoint.h"
#include "support/atomic_file.h"
#include "support/text.h"
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

// Rows of whole numbers below their header.
std::string table_text(const std::vector<std::string>& columns,
                       const std::vector<std::vector<int64_t>>& rows) {
  std::string text;
  for (const auto& column : columns) text += (&column == &columns.front() ? "" : "\t") + column;
  text += '\n';
  for (const auto& row : rows) {
    for (const int64_t& value : row) text += (&value == &row.front() ? "" : "\t") + std::to_string(value);
    text += '\n';
  }
  return text;
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
                  {"device", r.device},
                  {"seed", r.seed},
                  {"version", r.version},
                  {"commit", r.commit},
                  {"predictions", r.predictions},
                  {"counts", r.counts},
                  {"files", r.files},
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
    r.device = json.value("device", r.device);
    r.version = json.value("version", "");
    r.commit = json.value("commit", "");
    r.predictions = json.value("predictions", "");
    r.counts = json.value("counts", r.counts);
    r.files = json.value("files", r.files);
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

void keep_test(const Evaluation& evaluation, Result& result, const fs::path& run_folder) {
  const auto write = [&](const std::string& name, const std::string& text) {
    write_text(run_folder / name, text);
    return checksum(text);
  };
  result.test = evaluation.figures;
  for (const auto& [name, text] : evaluation.files) result.files[name] = write(name, text);
  if (!evaluation.predictions.empty()) {
    std::vector<std::vector<int64_t>> rows;
    for (size_t i = 0; i < evaluation.predictions.size(); ++i)
      rows.push_back({evaluation.targets.at(i), evaluation.predictions[i]});
    result.predictions = write(kPredictionsFile, table_text({"target", "prediction"}, rows));
  }
  for (const auto& [figure, counts] : evaluation.counts)
    result.counts[figure] = write(counts_file(figure), table_text(counts.columns, counts.examples));
}

ExampleCounts read_counts(const Result& result, const std::string& figure, const fs::path& run_folder) {
  const fs::path path = run_folder / counts_file(figure);
  const auto damaged = [&] { return std::runtime_error(damage_of_scored(path)); };
  const auto known = result.counts.find(figure);
  if (known == result.counts.end() || !fs::exists(path) || checksum_of_file(path) != known->second)
    throw damaged();
  std::ifstream file = open_named(path);
  ExampleCounts counts;
  std::string line;
  std::getline(file, line);
  std::istringstream header(line);
  for (std::string column; header >> column;) counts.columns.push_back(column);
  while (std::getline(file, line)) {
    std::istringstream numbers(line);
    std::vector<int64_t> row(std::istream_iterator<int64_t>(numbers), {});
    if (row.size() != counts.columns.size()) throw damaged();
    counts.examples.push_back(std::move(row));
  }
  return counts;
}

}  // namespace quatrain::train
