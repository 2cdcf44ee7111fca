#include "cli/metrics_file.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "train/own_json.h"

namespace quatrain::cli {
namespace {

using Json = nlohmann::json;

void add(Curve& curve, int64_t step, const Json& value) {
  curve.steps.push_back(step);
  curve.values.push_back(value.is_number() ? value.get<double>() : std::nan(""));
}

}  // namespace

MetricsFile read_metrics(const std::filesystem::path& run) {
  const auto path = run / "metrics.jsonl";
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("cannot read '" + path.string() + "': is '" + run.string() + "' a run?");
  MetricsFile result;
  int64_t before = 0;
  for (std::string line; std::getline(file, line);) {
    ++result.lines;
    const auto wrong = [&](const std::string& why) {
      throw std::runtime_error(path.string() + ":" + std::to_string(result.lines) + ": " + why);
    };
    const Json record = train::parse_own<Json>(line);
    if (!train::is_record(record) || file.eof())
      wrong("this is no whole line of a trainer; resuming the run drops it");
    const int64_t step = record["step"];
    if (step < before) wrong("step " + std::to_string(step) + " comes after step " + std::to_string(before));
    before = step;
    if (record["kind"] == "training") add(result.loss, step, record.value("loss", Json()));
    if (record["kind"] != "evaluation") continue;
    const Json figures = record.value("figures", Json());
    for (const auto& [name, value] : figures.items()) add(result.dev[name], step, value);
  }
  return result;
}

}  // namespace quatrain::cli
