#include <ATen/Parallel.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "bench/linear.h"
#include "bench/report.h"
#include "cli/bootstrap.h"
#include "cli/compare.h"
#include "cli/console.h"
#include "cli/figures.h"

namespace quatrain::cli {
namespace {

using Json = nlohmann::ordered_json;

// The values of a figure of the test set, one a seed.
std::vector<double> values_of(const Twin& twin, const std::string& figure) {
  std::vector<double> values;
  for (const auto& run : twin.runs)
    if (const auto found = run.result.test.find(figure); found != run.result.test.end())
      values.push_back(found->second);
  return values;
}

// How much more often a twin was right than the other, for each test example, averaged over seeds.
Interval difference(const Twin& twin, const Twin& reference) {
  std::vector<double> differences(twin.runs.front().right.size());
  for (size_t s = 0; s < twin.runs.size(); ++s)
    for (size_t i = 0; i < differences.size(); ++i)
      differences[i] +=
          (twin.runs[s].right.at(i) - reference.runs[s].right.at(i)) / static_cast<double>(twin.runs.size());
  return paired_bootstrap(differences);
}

// "93.1% \u00b1 0.4": a share's deviation is in points.
std::string mean_text(const tasks::Figure& figure, const std::vector<double>& values) {
  if (values.empty()) return "-";
  const auto [mean, deviation] = spread(values);
  const std::string text = shown(figure, mean, 1);
  if (values.size() < 2) return text;
  const bool share = figure.format == tasks::Figure::Format::share;
  return text + " \u00b1 " + (share ? fixed(100 * deviation, 1) : shown(figure, deviation));
}

std::string signed_points(double share) {
  return (share >= 0 ? "+" : "") + fixed(100 * share, 1);
}

const tasks::About& about(const Comparison& comparison) {
  return comparison.twins.front().recipe.about();
}

// Those that are not details of one run.
std::vector<tasks::Figure> compared(const Comparison& comparison) {
  auto figures = about(comparison).figures;
  std::erase_if(figures, [](const auto& figure) { return figure.detail; });
  return figures;
}

// A figure of every twin, with its ratio to the reference's.
void add_ratios(Table& table, const Comparison& comparison, const std::string& title,
                const std::function<double(const Twin&)>& value,
                const std::function<std::string(double)>& show) {
  const double reference = value(comparison.twins[comparison.reference]);
  const std::string none(ratio(1, 1).size() + 1, ' ');  // keeps the numbers below each other
  std::vector<std::string> row{title, ""};
  for (size_t i = 0; i < comparison.twins.size(); ++i) {
    const double own = value(comparison.twins[i]);
    row.push_back(show(own) + (i == comparison.reference ? none : " " + ratio(own, reference)));
  }
  table.row(row);
}

// "/attractors=2" -> "  2 attractors".
std::string group_title(const std::string& group) {
  const auto equals = group.find('=');
  std::string title = group.substr(equals + 1) + " " + group.substr(1, equals - 1);
  if (title.starts_with("1 ") && title.ends_with('s')) title.pop_back();
  return "  " + title;
}

void add_figures(Table& table, const Comparison& comparison) {
  const auto& first = comparison.twins.front().runs.front().result.test;
  const Twin& reference = comparison.twins[comparison.reference];
  const auto add = [&](const std::string& title, const tasks::Figure& figure, const std::string& group) {
    const auto other = first.find(figure.beside + group);
    std::vector<std::string> row{title, other == first.end() ? "" : shown(figure, other->second, 1)};
    for (const auto& twin : comparison.twins)
      row.push_back(mean_text(figure, values_of(twin, figure.name + group)));
    table.row(row);
  };
  for (const auto& figure : compared(comparison)) {
    add(figure.title + ", test set", figure, "");
    if (about(comparison).answers && figure.name == about(comparison).figures.front().name) {
      std::vector<std::string> row{"  points to " + reference.recipe.name + " [95%]", ""};
      for (const auto& twin : comparison.twins) {
        const Interval points = difference(twin, reference);
        row.push_back(&twin == &reference ? ""
                                          : signed_points(points.mean) + " [" + signed_points(points.low) +
                                                ", " + signed_points(points.high) + "]");
      }
      table.row(row);
    }
    for (const auto& group : tasks::groups_of(first))
      if (first.contains(figure.name + group)) add(group_title(group), figure, group);
  }
}

}  // namespace

std::string report(const Comparison& comparison) {
  Table table;
  std::vector<std::string> header{"", about(comparison).figures.front().beside};
  for (const auto& twin : comparison.twins) header.push_back(twin.recipe.name);
  table.row(header);
  table.rule();
  const auto count = [](double value) { return grouped(std::llround(value)); };
  const auto first = [](const Twin& twin) -> const train::Result& { return twin.runs.front().result; };
  add_ratios(
      table, comparison, "parameters",
      [&](const Twin& t) { return static_cast<double>(first(t).parameters); }, count);
  for (const auto& fact : about(comparison).facts)
    add_ratios(
        table, comparison, "  " + fact.title, [&](const Twin& t) { return first(t).facts.at(fact.name); },
        [&](double value) { return shown(fact, value); });
  add_ratios(
      table, comparison, "model file",
      [&](const Twin& t) { return static_cast<double>(first(t).model_bytes); }, bytes);
  add_figures(table, comparison);
  add_ratios(
      table, comparison, "training step", [](const Twin& t) { return t.times.training_step; }, seconds);
  add_ratios(
      table, comparison, "inference, batch 1", [](const Twin& t) { return t.times.inference_1; }, seconds);
  add_ratios(
      table, comparison, "inference, batch 32", [](const Twin& t) { return t.times.inference_32; }, seconds);

  const size_t seeds = comparison.twins.front().runs.size();
  std::string text = "\n" + comparison.name + ": " + counted(static_cast<int64_t>(seeds), "seed") + ", " +
                     counted(at::get_num_threads(), "thread") + "; times are medians, measured in turns\n\n" +
                     table.text();
  if (seeds > 1) text += "\u00b1: standard deviation over the seeds. ";
  if (about(comparison).answers) text += "[95%]: paired bootstrap over the test examples.";
  text += "\n\n" + bench::linear_table(comparison.layers);
  const std::string last = comparison.twins.back().runs.front().folder.string();
  text += "\nThe runs are in " + comparison.folder.string() + ". Next:\n  quatrain predict " + last +
          "\n      reads " + about(comparison).reads + " a line, and answers\n  quatrain compare " +
          comparison.folder.string() +
          " --seeds 3\n      adds seeds to this comparison\n  quatrain recipes\n      lists what else can be "
          "trained\n";
  return text;
}

Json to_json(const Comparison& comparison) {
  Json json{{"name", comparison.name},
            {"folder", comparison.folder.string()},
            {"threads", at::get_num_threads()},
            {"reference", comparison.twins[comparison.reference].recipe.name}};
  for (const auto& twin : comparison.twins) {
    const auto& first = twin.runs.front().result;
    Json one{{"name", twin.recipe.name}};
    for (const char* key : {"algebra", "scope"})
      if (const auto value = tasks::find_value(twin.recipe, std::string("model.") + key)) one[key] = *value;
    one["parameters"] = first.parameters;
    for (const auto& fact : about(comparison).facts) one[fact.name] = first.facts.at(fact.name);
    one["model_bytes"] = first.model_bytes;
    for (const auto& figure : compared(comparison)) {
      const Spread values = spread(values_of(twin, figure.name));
      one[figure.name] = {{"mean", values.mean}, {"deviation", values.deviation}};
    }
    if (about(comparison).answers) {
      const Interval points = difference(twin, comparison.twins[comparison.reference]);
      one["difference"] = {{"mean", points.mean}, {"low", points.low}, {"high", points.high}};
    }
    one["training_step_seconds"] = twin.times.training_step;
    one["inference_seconds"] = {{"batch_1", twin.times.inference_1}, {"batch_32", twin.times.inference_32}};
    for (const auto& run : twin.runs)
      one["runs"].push_back({{"seed", run.seed},
                             {"folder", run.folder.string()},
                             {"steps", run.result.steps},
                             {"best_step", run.result.best_step},
                             {"seconds", run.result.seconds},
                             {"step_seconds_median", run.result.step_seconds_median},
                             {"dev", run.result.dev},
                             {"test", run.result.test}});
    json["twins"].push_back(std::move(one));
  }
  json["layers"] = bench::to_json(comparison.layers);
  return json;
}

}  // namespace quatrain::cli
