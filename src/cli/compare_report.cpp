#include <ATen/Parallel.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "bench/linear.h"
#include "bench/report.h"
#include "cli/compare.h"
#include "cli/console.h"
#include "cli/figures.h"
#include "support/numbers.h"
#include "support/shell_word.h"
#include "support/text.h"
#include "train/finite.h"

namespace quatrain::cli {
namespace {

using Json = nlohmann::ordered_json;

// The values of a figure of a split, one a seed.
std::vector<double> values_of(const Twin& twin, train::Figures train::Result::*split,
                              const std::string& figure) {
  std::vector<double> values;
  for (const auto& run : twin.runs)
    if (const auto found = (run.result.*split).find(figure); found != (run.result.*split).end())
      values.push_back(found->second);
  return values;
}

const char* words(Verdict verdict) {
  switch (verdict) {
    case Verdict::ahead:
      return "ahead";
    case Verdict::behind:
      return "behind";
    case Verdict::level:
      return "level";
    default:
      return "open";
  }
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

// "+1.4": of a share in points.
std::string signed_difference(const tasks::Figure& figure, double value) {
  const bool share = figure.format == tasks::Figure::Format::share;
  const std::string text = share ? fixed(100 * value, 1) : fixed(value, 2);
  const bool zero = text.find_first_of("123456789") == text.npos;
  if (zero && text.starts_with('-')) return "+" + text.substr(1);
  return (text.starts_with('-') ? "" : "+") + text;
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

// A figure's differences, and what they say.
void add_differences(Table& table, const Comparison& comparison, const tasks::Figure& figure) {
  const Twin& reference = comparison.twins[comparison.reference];
  if (!reference.differences.contains(figure.name)) return;
  const bool share = figure.format == tasks::Figure::Format::share;
  std::vector<std::string> points{(share ? "  points to " : "  difference to ") + reference.recipe.name, ""};
  std::vector<std::string> between{"  95% interval", ""}, says{"  so the twin is", ""};
  for (const auto& twin : comparison.twins) {
    const bool other = &twin != &reference;
    const Interval& interval = twin.differences.at(figure.name);
    const bool known = !std::isnan(interval.low);
    points.push_back(other ? signed_difference(figure, interval.mean) : "");
    between.push_back(other && known ? signed_difference(figure, interval.low) + " to " +
                                           signed_difference(figure, interval.high)
                                     : "");
    says.push_back(other && known ? words(verdict(interval, figure.margin, figure.higher_is_better)) : "");
  }
  table.row(points);
  if (comparison.seeds.size() < 2) return;  // one run says nothing of the chance of training
  table.row(between);
  table.row(says);
}

void add_figures(Table& table, const Comparison& comparison) {
  using Split = train::Figures train::Result::*;
  const auto& first = comparison.twins.front().runs.front().result.test;
  const auto add = [&](const std::string& title, const tasks::Figure& figure, const std::string& group,
                       Split split = &train::Result::test) {
    const auto& figures = comparison.twins.front().runs.front().result.*split;
    const auto other = figures.find(figure.beside + group);
    std::vector<std::string> row{title, other == figures.end() ? "" : shown(figure, other->second, 1)};
    for (const auto& twin : comparison.twins)
      row.push_back(mean_text(figure, values_of(twin, split, figure.name + group)));
    table.row(row);
  };
  const tasks::Figure& selecting = comparison.twins.front().recipe.selecting();
  add(selecting.title + ", dev set", selecting, "", &train::Result::dev);
  const auto figures_compared = compared(comparison);
  for (const auto& figure : figures_compared) {
    if (!first.contains(figure.name)) continue;
    add(figure.title + ", test set", figure, "");
    add_differences(table, comparison, figure);
    if (figure.name != figures_compared.front().name) continue;  // of parts one figure is enough
    for (const auto& group : tasks::groups_of(first))
      if (first.contains(figure.name + group)) add(group_title(group), figure, group);
  }
}

// What the figures of the table mean.
std::string legend(const Comparison& comparison) {
  std::string text;
  const size_t twins = comparison.twins.size();
  if (!comparison.twins.front().trials.empty()) text += "Rates were chosen on the dev set. ";
  if (comparison.seeds.size() > 1) {
    text += "\u00b1 is the standard deviation over the seeds.";
    if (comparison.judged && twins > 1) {
      text += " Intervals hold the chance of seeds and of test\nexamples";
      if (twins > 2) text += ", and the " + std::to_string(twins - 1) + " of a figure hold together";
      const tasks::Figure& figure = comparison.judging;
      const bool share = figure.format == tasks::Figure::Format::share;
      text += ". Level: within " +
              (share ? counted(std::llround(100 * figure.margin), "point")
                     : fixed(figure.margin, 1) + " " + figure.title) +
              ". Open: neither that nor a difference is shown.";
    }
  } else if (comparison.judged && twins > 1) {
    text += "One seed says nothing of the chance of training: --seeds 5 gives intervals.";
  }
  return text.empty() ? text : text + "\n";
}

// Of answers that are no numbers a table says nothing.
std::string doubts(const Comparison& comparison) {
  std::string text;
  for (const auto& twin : comparison.twins)
    for (const auto& run : twin.runs)
      if (const std::string doubt = train::doubt_of(run.result.test, "test"); !doubt.empty())
        text += twin.recipe.name + ", seed " + std::to_string(run.seed) + ": " + doubt + "\n";
  return text;
}

// What --seeds takes for two more: a number where they count up from the recipe's, else a list.
std::string more_seeds(const Comparison& comparison) {
  std::vector<uint64_t> seeds = comparison.seeds;
  const uint64_t first = comparison.twins.front().recipe.train.seed;
  bool in_turn = true;
  for (size_t i = 0; i < seeds.size(); ++i) in_turn = in_turn && seeds[i] == first + i;
  if (in_turn) return std::to_string(seeds.size() + 2);
  for (int more = 0; more < 2; ++more) seeds.push_back(1 + *std::max_element(seeds.begin(), seeds.end()));
  return list_of_seeds(seeds);
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
  if (!comparison.twins.front().trials.empty()) {
    std::vector<std::string> rates{"learning rate", ""};
    for (const auto& twin : comparison.twins) rates.push_back(twin.rate);
    table.row(rates);
  }
  add_figures(table, comparison);
  add_ratios(
      table, comparison, "training step", [](const Twin& t) { return t.times.training_step; }, seconds);
  add_ratios(
      table, comparison, "inference, batch 1", [](const Twin& t) { return t.times.inference_1; }, seconds);
  add_ratios(
      table, comparison, "inference, batch 32", [](const Twin& t) { return t.times.inference_32; }, seconds);

  const size_t seeds = comparison.seeds.size();
  std::set<std::string> devices;
  for (const auto& twin : comparison.twins)
    for (const auto& run : twin.runs) devices.insert(run.result.device);
  std::string text = "\n" + comparison.name + ": " + counted(static_cast<int64_t>(seeds), "seed") + ", " +
                     counted(at::get_num_threads(), "thread") + "; times are medians, measured in turns" +
                     (devices == std::set<std::string>{"cpu"}
                          ? ""
                          : " on the CPU; trained on " + quatrain::join({devices.begin(), devices.end()})) +
                     "\n\n" + table.text();
  text += legend(comparison) + doubts(comparison);
  if (!comparison.layers.empty()) text += "\n" + bench::linear_table(comparison.layers);
  const auto& last = comparison.twins.back();
  text += "\nThe runs are in " + comparison.folder.string() + ". Next:\n";
  if (last.recipe.options->answers_lines())
    text += "  quatrain predict " + shell_word(last.runs.front().folder) + "\n      reads " +
            about(comparison).reads + " a line, and answers\n";
  text += "  quatrain compare " + shell_word(comparison.folder) + " --seeds " + more_seeds(comparison) +
          "\n      adds seeds to this comparison\n  quatrain recipes\n      lists what else can be "
          "trained\n";
  return text;
}

namespace {

Json json_of(const Interval& interval) {
  return {{"mean", interval.mean}, {"low", interval.low}, {"high", interval.high}};
}

}  // namespace

Json to_json(const Comparison& comparison) {
  Json json{{"name", comparison.name},
            {"folder", comparison.folder.string()},
            {"threads", at::get_num_threads()},
            {"reference", comparison.twins[comparison.reference].recipe.name},
            {"seeds", comparison.seeds},
            {"judging", comparison.judging.name},
            {"margin", comparison.judging.margin}};
  for (const auto& twin : comparison.twins) {
    const auto& first = twin.runs.front().result;
    Json one{{"name", twin.recipe.name}};
    for (const char* key : {"algebra", "scope"})
      if (const auto value = tasks::find_value(twin.recipe, std::string("model.") + key)) one[key] = *value;
    one["parameters"] = first.parameters;
    for (const auto& fact : about(comparison).facts) one[fact.name] = first.facts.at(fact.name);
    one["model_bytes"] = first.model_bytes;
    for (const auto& figure : compared(comparison)) {
      if (!first.test.contains(figure.name)) continue;
      const Spread values = spread(values_of(twin, &train::Result::test, figure.name));
      one[figure.name] = {{"mean", values.mean}, {"deviation", values.deviation}};
      if (const auto found = twin.differences.find(figure.name);
          found != twin.differences.end() && figure.name != comparison.judging.name)
        one[figure.name]["difference"] = json_of(found->second);
    }
    const auto on_dev = values_of(twin, &train::Result::dev, twin.recipe.selecting().name);
    if (const Spread dev = spread(on_dev); !on_dev.empty())
      one["dev"] = {{"mean", dev.mean}, {"deviation", dev.deviation}};
    if (comparison.judged) {
      const Interval& points = twin.differences.at(comparison.judging.name);
      one["difference"] = json_of(points);
      if (&twin != &comparison.twins[comparison.reference] && !std::isnan(points.low))
        one["verdict"] =
            words(verdict(points, comparison.judging.margin, comparison.judging.higher_is_better));
    }
    one["rate"] = twin.recipe.train.optimizer.learning_rate;
    for (const auto& trial : twin.trials)
      one["rates"].push_back({{"rate", trial.rate}, {"dev", trial.dev ? Json(*trial.dev) : Json()}});
    one["training_step_seconds"] = twin.times.training_step;
    one["inference_seconds"] = {{"batch_1", twin.times.inference_1}, {"batch_32", twin.times.inference_32}};
    for (const auto& run : twin.runs)
      one["runs"].push_back({{"seed", run.seed},
                             {"folder", run.folder.string()},
                             {"steps", run.result.steps},
                             {"best_step", run.result.best_step},
                             {"seconds", run.result.seconds},
                             {"commit", run.result.commit},
                             {"device", run.result.device},
                             {"step_seconds_median", run.result.step_seconds_median},
                             {"dev", run.result.dev},
                             {"test", run.result.test}});
    json["twins"].push_back(std::move(one));
  }
  json["layers"] = bench::to_json(comparison.layers);
  return json;
}

}  // namespace quatrain::cli
