#include <ATen/Parallel.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "bench/linear.h"
#include "cli/commands.h"
#include "cli/compare.h"
#include "cli/console.h"
#include "cli/json_file.h"
#include "cli/load_while_telling.h"
#include "cli/recipe_files.h"
#include "cli/run_folder.h"
#include "cli/stop.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/session.h"
#include "support/atomic_file.h"
#include "support/shell_word.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSeedsFile = "seeds.txt";

uint64_t whole_number(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > 1'000'000'000'000)
    throw tasks::RecipeError("--seeds takes a number of seeds or a list such as 1,2,3; got '" + text + "'");
  return value;
}

// "3" counts from the recipe's seed; "1,5,9" lists.
std::vector<uint64_t> parse_seeds(const std::string& text, uint64_t first) {
  std::vector<uint64_t> seeds;
  if (text.find(',') == text.npos) {
    constexpr uint64_t kMost = 1000;
    const uint64_t count = text.empty() ? 1 : whole_number(text);
    if (count < 1 || count > kMost) throw tasks::RecipeError("--seeds takes 1 to 1000 seeds, got " + text);
    for (uint64_t i = 0; i < count; ++i) seeds.push_back(first + i);
    return seeds;
  }
  std::istringstream list(text);
  for (std::string one; std::getline(list, one, ',');) {
    seeds.push_back(whole_number(one));
    if (std::count(seeds.begin(), seeds.end(), seeds.back()) > 1)
      throw tasks::RecipeError("--seeds names " + one + " twice");
  }
  return seeds;
}

// Single layers where the sizes pay.
void measure_layers(Comparison& comparison, const tasks::Recipe::Compare& options) {
  const std::vector<int64_t> batches{1, 32, 128, 1024};
  const std::vector<std::string> algebras{"quaternion", "phm(4)", "octonion"};
  bench::LinearCase one;
  one.in = one.out = options.layer_width;
  one.threads = at::get_num_threads();
  const double seconds = options.layer_seconds / static_cast<double>(2 * batches.size() * algebras.size());
  std::vector<bench::LinearCase> cases;
  for (const auto& algebra : algebras)
    for (const bool training : {false, true})
      for (const int64_t batch : batches) {
        one.algebra = algebra, one.training = training, one.batch = batch;
        cases.push_back(one);
      }
  bench::Watch watch;
  watch.round = throw_if_stopped;
  bench::measure(bench::linear(cases, seconds, false), comparison.layers, false, watch);
}

std::string stored_seeds(const fs::path& folder) {
  std::ifstream file(folder / kSeedsFile);
  std::string text;
  std::getline(file, text);
  return text;
}

}  // namespace

std::string list_of_seeds(const std::vector<uint64_t>& seeds) {
  std::string text;
  for (const uint64_t seed : seeds) text += (text.empty() ? "" : ",") + std::to_string(seed);
  return seeds.size() == 1 ? text + "," : text;  // a list even then
}

int compare_command(const CompareArguments& arguments) {
  check_output(arguments.json);
  const RecipeFile file = find_recipe(arguments.recipe);
  const tasks::Recipe recipe = read_with_twins(file, arguments);
  if (recipe.twins.empty())
    throw tasks::RecipeError(
        "recipe '" + recipe.name +
        "' has no twins to compare: add [[twins]] tables, as 'quatrain recipes show agreement' does");
  if (!arguments.out.empty()) refuse_inside_checkpoint(arguments.out);
  Comparison comparison;
  comparison.folder = !arguments.out.empty() ? fs::path(arguments.out) : file.folder;
  const bool known = arguments.seeds.empty() && !comparison.folder.empty();
  const std::string wanted = known ? stored_seeds(comparison.folder) : arguments.seeds;
  comparison.seeds = parse_seeds(wanted, recipe.train.seed);
  comparison.name = file.name;
  for (const auto& twin : recipe.twins) {
    Twin one;
    one.recipe = tasks::twin_recipe(recipe, twin);
    if (one.recipe.train.device != recipe.train.device)
      throw tasks::RecipeError(
          "the twins of a comparison are trained on one device: train.device of the twin '" + twin.name +
          "' is " + one.recipe.train.device + ", the recipe's " + recipe.train.device);
    if (twin.name == "real") comparison.reference = comparison.twins.size();
    comparison.twins.push_back(std::move(one));
  }
  if (!comparison.folder.empty()) refuse_unusable_runs(comparison);  // before data are prepared
  const train::Session session(recipe.train.device);
  tasks::set_threads(recipe);
  const auto data = load_while_telling(recipe, {.folder = arguments.data});
  if (!data->has("test")) throw std::runtime_error("the data have no test set to compare on");
  for (size_t i = 0; i < recipe.twins.size(); ++i)  // with what only the data know
    comparison.twins[i].recipe = tasks::twin_recipe(data->recipe(), recipe.twins[i]);
  std::optional<FreshFolder> fresh;
  if (comparison.folder.empty()) comparison.folder = fresh.emplace(file.name).path();
  check_runs(comparison);
  check_weights(comparison, *data);
  fs::create_directories(comparison.folder);
  write_text(comparison.folder / "recipe.toml", tasks::to_toml(data->recipe()));
  write_text(comparison.folder / kSeedsFile, list_of_seeds(comparison.seeds) + "\n");

  watch_for_stop();
  print_notes(data->notes());
  print_notes(tasks::notes_of_missing_sets(*data));
  std::fprintf(stderr, "comparing %zu twins of %s into %s\n", comparison.twins.size(), file.name.c_str(),
               comparison.folder.c_str());
  try {
    train_twins(comparison, *data, session);
    find_differences(comparison);
    std::fprintf(stderr, "measuring the twins in turns\n");
    measure_twins(comparison, *data);
    if (recipe.compare.layer_seconds > 0) {
      std::fprintf(stderr, "measuring single layers in turns\n");
      measure_layers(comparison, recipe.compare);
    }
  } catch (const Stopped&) {
    std::fprintf(stderr, "stopped; nothing is lost, continue with: quatrain compare %s\n",
                 shell_word(comparison.folder).c_str());
    throw;
  }
  const auto json = to_json(comparison);
  write_json(json, comparison.folder / "compare.json");
  if (!arguments.json.empty()) write_json(json, arguments.json);
  if (arguments.json != "-") std::fputs(report(comparison).c_str(), stdout);
  return kSuccess;
}

}  // namespace quatrain::cli
