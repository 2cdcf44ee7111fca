#include "cli/metrics_file.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "support/text.h"
#include "train/own_json.h"
#include "train/run_files.h"

namespace quatrain::cli {
namespace {

void add(Curve& curve, int64_t step, const nlohmann::json& value) {
  curve.steps.push_back(step);
  curve.values.push_back(value.is_number() ? value.get<double>() : std::nan(""));
}

}  // namespace

MetricsFile read_metrics(const std::filesystem::path& run) {
  const auto path = run / train::kMetricsFile;
  if (!std::filesystem::exists(path))
    throw std::runtime_error("cannot read '" + path.string() + "': there is no such file; is '" +
                             run.string() + "' a run?");
  std::ifstream file = open_named(path);
  MetricsFile result;
  int64_t before = 0;
  for (std::string line; std::getline(file, line);) {
    ++result.lines;
    const auto leave = [&](const std::string& why) {
      result.damage.push_back(path.string() + ":" + std::to_string(result.lines) + ": " + why);
    };
    const nlohmann::json record = train::parse_record<nlohmann::json>(line);
    if (record.is_discarded() || file.eof()) {
      leave("this line is not as a trainer wrote it; delete it, or resume the run, which drops it");
      continue;
    }
    result.unsealed += !train::holds_checksum(line);
    const int64_t step = record["step"];
    if (step < before) {
      leave("step " + std::to_string(step) + " comes after step " + std::to_string(before) + "; delete it");
      continue;
    }
    before = step;
    if (record["kind"] == "training") add(result.loss, step, record.value("loss", nlohmann::json()));
    if (record["kind"] != "evaluation") continue;
    const nlohmann::json figures = record.value("figures", nlohmann::json());
    for (const auto& [name, value] : figures.items()) add(result.dev[name], step, value);
  }
  return result;
}

}  // namespace quatrain::cli
