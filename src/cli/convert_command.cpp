#include <fnmatch.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/convert.h"
#include "cli/json_file.h"
#include "cli/run_folder.h"
#include "cli/stop.h"
#include "quatrain/tasks/run.h"
#include "support/shell_word.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

bool matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const auto& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

nn::ConversionReport convert_file(const ConvertArguments& arguments) {
  nn::ConvertStateOptions options{nn::AlgebraSpec(arguments.algebra)};
  options.heads(arguments.heads);
  const auto any_of = [](const std::vector<std::string>& patterns) {
    return [&patterns](const std::string& name) { return matches(patterns, name); };
  };
  if (!arguments.where.empty()) options.where(any_of(arguments.where));
  options.except(any_of(arguments.except));
  nn::Safetensors state = nn::read_safetensors(arguments.in);
  nn::ConversionReport report = nn::convert_state(state, options);
  check_converted(report, arguments.in);
  nn::write_safetensors(arguments.out, state.tensors, state.metadata);
  return report;
}

Json to_json(const nn::ConversionReport& report, const ConvertArguments& arguments) {
  Json layers = Json::array();
  for (const auto& layer : report.layers)
    layers.push_back({{"name", layer.name},
                      {"in", layer.in_features},
                      {"out", layer.out_features},
                      {"before", layer.before},
                      {"after", layer.after},
                      {"error", layer.error ? Json(*layer.error) : Json()},
                      {"skipped", layer.skipped.empty() ? Json() : Json(layer.skipped)}});
  return {{"in", arguments.in},         {"out", arguments.out},  {"algebra", report.algebra},
          {"before", report.before},    {"after", report.after}, {"converted", report.converted()},
          {"layers", std::move(layers)}};
}

int write_for_other(const ConvertArguments& arguments) {
  if (!arguments.where.empty() || !arguments.except.empty() || arguments.heads > 0)
    throw UsageError("convert: --where, --except and --heads are for another algebra, not for --to");
  require_new("convert", arguments.out);
  const auto model = tasks::load_run(arguments.in, parse_settings(arguments.settings), tasks::Use::scores);
  const bool model_alone = std::ranges::any_of(model->recipe().about().exports, [&](const auto& format) {
    return format.name == arguments.to && !format.scores_data;
  });
  const bool chooses = !arguments.data.empty() || !arguments.split.empty() || !arguments.settings.empty();
  if (chooses && model_alone)
    throw UsageError("convert: --data, --split and --set say what is scored, and --to " + arguments.to +
                     " writes the model alone: leave them out");
  tasks::set_threads(model->recipe());
  const torch::NoGradGuard no_grad;
  watch_for_stop();  // nothing half-written is left
  const auto notes = model->export_to({.format = arguments.to,
                                       .folder = arguments.out,
                                       .data = arguments.data,
                                       .split = arguments.split,
                                       .after_each = throw_if_stopped});
  throw_if_stopped();  // while what could not be interrupted was written
  std::printf("The run %s is written for %s, in %s.\n", arguments.in.c_str(), arguments.to.c_str(),
              arguments.out.c_str());
  for (const auto& note : notes) std::printf("  %s\n", note.c_str());
  return kSuccess;
}

}  // namespace

void check_converted(const nn::ConversionReport& report, const std::string& in) {
  if (report.converted() > 0) return;
  if (report.layers.empty()) throw std::runtime_error("convert: '" + in + "' contains no linear layer");
  const auto& first = report.layers.front();
  throw std::runtime_error(
      "convert: no layer of '" + in + "' can be converted: '" + first.name + "': " + first.skipped +
      (report.layers.size() > 1 ? " (and " + std::to_string(report.layers.size() - 1) + " more layers)"
                                : ""));
}

int convert_command(const ConvertArguments& arguments) try {
  check_output(arguments.json);
  if (!arguments.to.empty()) return write_for_other(arguments);
  if (arguments.algebra.empty())
    throw UsageError("convert: --algebra is required, or --to, which writes a run for another program");
  const nn::AlgebraSpec spec(arguments.algebra);
  if (spec.trained_rank > 0)
    throw UsageError("convert: trained factors (" + spec.text() +
                     ") have no nearest weights in closed form: take 'phm(" + std::to_string(spec.n) + ")'");
  if (spec.n == 1)
    throw UsageError("convert: --algebra must be hypercomplex, like quaternion or 'phm(4)', got " +
                     arguments.algebra);
  refuse_inside_checkpoint(arguments.out);
  const bool run = fs::is_directory(arguments.in);
  if (!run && !fs::exists(arguments.in))
    throw UsageError("convert: there is no weights file or run '" + arguments.in + "'");
  if (fs::exists(arguments.out) && !arguments.overwrite)
    throw UsageError("convert: '" + arguments.out + "' exists: choose another name, or pass --overwrite");
  if (fs::exists(arguments.out) && fs::is_directory(arguments.out) != run)
    throw UsageError("convert: '" + arguments.out + "' is " + (run ? "a file" : "a folder") + ", '" +
                     arguments.in + "' is " + (run ? "a folder" : "a file") + ": choose another OUT");
  const nn::ConversionReport report = run ? convert_run(arguments) : convert_file(arguments);

  if (!arguments.json.empty()) write_json(to_json(report, arguments), arguments.json);
  if (arguments.json == "-") return kSuccess;
  std::printf("%s\n%s of %s in the algebra %s; written to %s\n", report.table().c_str(),
              grouped(report.converted()).c_str(),
              counted(static_cast<int64_t>(report.layers.size()), "layer").c_str(), report.algebra.c_str(),
              arguments.out.c_str());
  if (run) {
    const std::string word = shell_word(arguments.out);
    std::printf(
        "Next:\n  quatrain evaluate %s\n  quatrain train %s --out FOLDER --set train.steps=0 --set "
        "train.epochs=1 "
        "--set train.warmup_share=0.1\n",
        word.c_str(), word.c_str());
  }
  return kSuccess;
} catch (const std::invalid_argument& error) {  // the library's word for what cannot be asked for
  throw UsageError(error.what());
}

}  // namespace quatrain::cli
