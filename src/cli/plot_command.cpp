#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>
#include <stdexcept>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/figures.h"
#include "cli/gnuplot.h"
#include "cli/metrics_file.h"
#include "cli/recipe_files.h"
#include "support/atomic_file.h"
#include "train/checkpoint.h"
#include "train/run_files.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;

struct Line {
  std::string title;
  Curve curve;
};

// A run by its folder's name, and by more of its path where two are called alike.
std::vector<std::string> titles(const std::vector<std::string>& runs) {
  std::vector<std::string> all;
  for (const auto& run : runs) all.push_back(folder_name(run));
  if (std::set<std::string>(all.begin(), all.end()).size() < runs.size()) return runs;
  return all;
}

// The figure that selects in runs of this kind.
std::string selecting_figure(const std::string& run) {
  try {
    const auto text = find_recipe(run);
    return tasks::parse_recipe(text.text, text.origin, text.name).selecting().name;
  } catch (const std::exception&) {
    return "loss";  // no recipe is stored, or it cannot be read: every kind has a loss
  }
}

bool has_numbers(const Curve& curve) {
  return std::any_of(curve.values.begin(), curve.values.end(), [](double v) { return std::isfinite(v); });
}

// One panel: data in the script, one block a curve.
void add_panel(std::ostringstream& script, const std::string& title, const std::string& panel,
               const std::vector<Line>& lines) {
  std::string plots;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string block = "$" + panel + std::to_string(i);
    script << block << " << EOD\n";
    for (size_t j = 0; j < lines[i].curve.steps.size(); ++j)
      script << lines[i].curve.steps[j] << " " << lines[i].curve.values[j] << "\n";
    script << "EOD\n";
    // A line through one point would not be seen.
    const char* style = lines[i].curve.steps.size() == 1 ? "points pointtype 7" : "lines linewidth 1.5";
    plots += (i ? ", " : "plot ") + block + " using 1:2 with " + style + " linetype " +
             std::to_string(i + 1) + " title " + gnuplot_quoted(lines[i].title);
  }
  script << "set title " << gnuplot_quoted(title) << "\n" << plots << "\n";
}

}  // namespace

int plot_command(const PlotArguments& arguments) {
  const fs::path out = arguments.out;
  const std::string ending = out.extension().string();
  if (ending != ".svg" && ending != ".png")
    throw UsageError("plot: --out must end in .svg or .png, got '" + arguments.out + "'");
  if (const fs::path parent = fs::absolute(out).parent_path(); !fs::is_directory(parent))
    throw UsageError("plot: --out: there is no folder '" + parent.string() + "'");
  const auto names = titles(arguments.runs);
  std::vector<MetricsFile> metrics;
  for (const auto& run : arguments.runs) {
    if (!std::filesystem::is_directory(run))
      throw UsageError("plot: '" + std::string(run) + "' is not a run: name the folder of a run");
    if (train::is_average(run))
      throw UsageError("plot: '" + std::string(run) +
                       "' is a mean of checkpoints, which has no curves: name the run that it is of");
    if (!train::parts_of(run).metrics && train::is_checkpoint(fs::path(run) / "best"))
      throw UsageError("plot: '" + std::string(run) +
                       "' holds weights without curves, as a converted run does: train it, or name the run "
                       "that they are of");
    metrics.push_back(read_metrics(run));
    for (const auto& damage : metrics.back().damage)
      std::fprintf(stderr, "left out: %s\n", printable(damage).c_str());
  }

  std::set<std::string> known;
  for (const auto& one : metrics)
    for (const auto& [name, curve] : one.dev) known.insert(name);
  const std::string figure =
      arguments.figure.empty() ? selecting_figure(arguments.runs.front()) : arguments.figure;
  if (!arguments.figure.empty() && !known.contains(figure)) {
    std::string list;
    for (const auto& name : known) list += (list.empty() ? "" : ", ") + name;
    throw UsageError("plot: the runs have no figure '" + figure + "' of the dev set" +
                     (list.empty() ? "" : "; they have " + list));
  }
  std::vector<Line> loss, dev;
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (has_numbers(metrics[i].loss)) loss.push_back({names[i], metrics[i].loss});
    const auto found = metrics[i].dev.find(figure);
    if (found != metrics[i].dev.end() && has_numbers(found->second))
      dev.push_back({names[i], found->second});
    else
      std::fprintf(stderr, "%s has no %s of the dev set\n", printable(names[i]).c_str(), figure.c_str());
  }
  if (loss.empty() && dev.empty())
    throw std::runtime_error(
        "plot: the runs have logged no number yet (train.log_every says how often they do)");

  std::ostringstream script;
  script.precision(9);
  const int panels = !loss.empty() + !dev.empty();
  script << "set terminal " << (ending == ".svg" ? "svg" : "pngcairo") << " size " << 520 * panels
         << ",400 noenhanced font 'sans,11' background 'white'\n"
         << "set datafile missing 'nan'\nset grid linecolor rgb '#dddddd'\nset key outside bottom center "
            "horizontal\n"
         << (arguments.logarithmic ? "set logscale y\nset format y '%g'\n" : "")
         << "set xlabel 'step'\nset multiplot layout 1," << panels << "\n";
  if (!loss.empty()) add_panel(script, "training loss", "loss", loss);
  if (!dev.empty()) add_panel(script, figure + " on the dev set", "dev", dev);
  script << "unset multiplot\n";
  write_text(out, run_gnuplot(script.str()));
  std::printf("%s\n", arguments.out.c_str());
  return kSuccess;
}

}  // namespace quatrain::cli
