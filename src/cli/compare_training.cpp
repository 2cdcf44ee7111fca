#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "cli/compare.h"
#include "cli/figures.h"
#include "cli/run_folder.h"
#include "cli/stop.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/checkpoint.h"
#include "quatrain/train/progress.h"
#include "support/text.h"
#include "train/checkpoint.h"
#include "train/finite.h"
#include "train/records.h"
#include "train/run_files.h"
#include "train/run_lock.h"

// What `compare` trains: a run for each twin and seed, and those that choose a rate.
namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;

// 1 where the stored answer was right.
std::vector<double> read_right(const fs::path& run) {
  const fs::path path = run / train::kPredictionsFile;
  std::ifstream file = open_named(path);
  std::string line;
  std::getline(file, line);  // the header
  std::vector<double> right;
  for (int64_t target = 0, answer = 0; file >> target >> answer;) right.push_back(target == answer ? 1 : 0);
  if (right.empty() || !file.eof())
    throw std::runtime_error(
        "'" + path.string() +
        "' cannot be read: delete it and result.json beside it, and compare again: the test "
        "set is scored again");
  return right;
}

tasks::Recipe with(tasks::Recipe recipe, const std::string& rate, uint64_t seed) {
  if (!rate.empty()) tasks::apply(recipe, {"train.rate", rate, "compare.rates"});
  recipe.train.seed = seed;
  return recipe;
}

fs::path folder_of(const Comparison& comparison, const Twin& twin, const std::string& rate, uint64_t seed) {
  return comparison.folder /
         (twin.recipe.name + (rate.empty() ? "" : "-rate" + rate) + "-seed" + std::to_string(seed));
}

// All runs that there may be: use(recipe, folder).
template <class Use>
void for_each_run(const Comparison& comparison, const Use& use) {
  auto rates = tasks::rates_of(comparison.twins.front().recipe);  // all twins have the same [compare]
  if (rates.empty()) rates.emplace_back();                        // the recipe's own
  for (const auto& twin : comparison.twins)
    for (const auto& rate : rates)
      for (const uint64_t seed : comparison.seeds)
        use(with(twin.recipe, rate, seed), folder_of(comparison, twin, rate, seed));
}

// Trains runs one after the other, or takes what they have brought before.
class Runner {
 public:
  Runner(const Comparison& comparison, const tasks::Data& data, const train::Session& session, size_t total)
      : comparison_(comparison), data_(data), session_(session), total_(total) {}

  TwinRun train(const Twin& twin, const std::string& rate, uint64_t seed) {
    throw_if_stopped();
    const tasks::Recipe recipe = with(twin.recipe, rate, seed);
    TwinRun one;
    one.seed = seed;
    one.folder = folder_of(comparison_, twin, rate, seed);
    const auto task = tasks::make_task(recipe, data_);
    train::RunOptions run;
    run.folder = one.folder;
    run.existing = train::Existing::resume;
    run.stop = &stop_requested();
    std::string title = "[" + std::to_string(++number_) + "/" + std::to_string(total_) + "] " + recipe.name;
    if (!rate.empty()) title += " rate " + rate;
    if (comparison_.seeds.size() > 1) title += " seed " + std::to_string(seed);
    train::ProgressLine line(stderr, title);
    if (fs::exists(one.folder / "result.json")) line.message("was trained before");
    run.on_progress = [&](const train::Progress& progress) { line.show(progress); };
    run.on_message = [&](const std::string& text) { line.message(text); };
    one.result = train::Trainer(*task, recipe.train, run, session_).run();
    if (!one.result.finished) throw Stopped{};
    return one;
  }

  // Without a figure where a run comes to numbers that are not finite, as one of too high a rate may.
  RateTrial try_rate(const Twin& twin, const std::string& rate, size_t seeds) {
    RateTrial trial{rate, {}, {}};
    double sum = 0;
    try {
      for (size_t s = 0; s < seeds; ++s) {
        TwinRun run = train(twin, rate, comparison_.seeds[s]);
        if (const std::string doubt = train::doubt_of(run.result.dev, "dev"); !doubt.empty())
          throw train::NotFinite(doubt);
        sum += run.result.dev.at(twin.recipe.selecting().name);
        trial.runs.push_back(std::move(run));
      }
    } catch (const train::NotFinite& error) {
      std::fprintf(stderr, "%s: the rate %s is left out: %s\n", twin.recipe.name.c_str(), rate.c_str(),
                   error.what());
      number_ += seeds - trial.runs.size() - 1;
      return trial;
    }
    if (std::isfinite(sum)) trial.dev = sum / static_cast<double>(seeds);
    return trial;
  }

 private:
  const Comparison& comparison_;
  const tasks::Data& data_;
  const train::Session& session_;
  size_t total_, number_ = 0;
};

// The test set is not looked at.
const RateTrial& best_of(const Twin& twin) {
  const bool higher = twin.recipe.selecting().higher_is_better;
  const RateTrial* best = nullptr;
  for (const RateTrial& trial : twin.trials)
    if (trial.dev && (!best || (higher ? *trial.dev > *best->dev : *trial.dev < *best->dev))) best = &trial;
  if (!best)
    throw std::runtime_error(
        "no rate of compare.rates trains the twin '" + twin.recipe.name +
        "': continue the comparison with lower ones, such as --set compare.rates=\"1e-4, 3e-4\"");
  return *best;
}

bool all_have_counts(const Comparison& comparison, const std::string& figure) {
  return std::all_of(comparison.twins.begin(), comparison.twins.end(), [&](const Twin& twin) {
    return std::all_of(twin.runs.begin(), twin.runs.end(),
                       [&](const TwinRun& run) { return run.result.counts.contains(figure); });
  });
}

}  // namespace

void refuse_unusable_runs(const Comparison& comparison) {
  for_each_run(comparison, [](const tasks::Recipe&, const fs::path& folder) {
    train::refuse_training(folder);
    if (train::has_other_weights(folder / "best"))
      throw std::runtime_error(
          "the weights in '" + (folder / "best").string() +
          "' are not those that the run selected, but were accepted by quatrain check, "
          "so that its figures are not theirs: move the run out of the comparison, which "
          "trains it anew");
    if (train::has_checkpoint(folder, "last")) train::find_checkpoint(folder, "last");
  });
}

void check_runs(const Comparison& comparison) {
  for_each_run(comparison,
               [](const tasks::Recipe& recipe, const fs::path& folder) { check_resumable(recipe, folder); });
}

void check_weights(const Comparison& comparison, const tasks::Data& data) {
  for (const auto& twin : comparison.twins) {
    if (twin.recipe.weights.empty()) continue;
    const auto said = [&](const std::string& problem) {
      return "the twin '" + twin.recipe.name + "' cannot start from train.weights: " + problem;
    };
    try {
      tasks::make_model(twin.recipe, data);
    } catch (const tasks::RecipeError& error) {
      throw tasks::RecipeError(said(error.what()));
    } catch (const c10::Error& error) {
      throw std::runtime_error(said(error.what_without_backtrace()));
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(said(error.what()));
    }
  }
}

void train_twins(Comparison& comparison, const tasks::Data& data, const train::Session& session) {
  const auto& seeds = comparison.seeds;
  const auto& options = comparison.twins.front().recipe.compare;
  const size_t tried = std::min(seeds.size(), static_cast<size_t>(options.rate_seeds));
  const auto rates = tasks::rates_of(comparison.twins.front().recipe);
  const size_t each = rates.empty() ? seeds.size() : rates.size() * tried + seeds.size() - tried;
  Runner runner(comparison, data, session, comparison.twins.size() * each);

  for (auto& twin : comparison.twins) {
    for (const auto& rate : rates) twin.trials.push_back(runner.try_rate(twin, rate, tried));
    if (twin.trials.empty()) continue;
    const RateTrial& best = best_of(twin);
    twin.rate = best.rate;
    twin.runs = best.runs;
  }
  for (size_t s = 0; s < seeds.size(); ++s)
    for (auto& twin : comparison.twins)
      if (twin.runs.size() <= s) twin.runs.push_back(runner.train(twin, twin.rate, seeds[s]));
  for (auto& twin : comparison.twins) twin.recipe = with(twin.recipe, twin.rate, twin.recipe.train.seed);
}

void find_differences(Comparison& comparison) {
  const Twin& reference = comparison.twins[comparison.reference];
  const tasks::About& about = reference.recipe.about();
  comparison.judging = reference.recipe.judging();
  const bool counted = all_have_counts(comparison, comparison.judging.name);
  if (!counted) comparison.judging = about.figures.front();
  comparison.judged = counted || about.answers;
  if (!comparison.judged) return;
  const auto compare = [&](const std::string& figure, const auto& contributions_of) {
    const auto answers = [&](const Twin& twin) {
      Answers all;
      for (const auto& run : twin.runs) all.push_back(contributions_of(run));
      return all;
    };
    const auto others = std::max<int64_t>(1, static_cast<int64_t>(comparison.twins.size()) - 1);
    const Answers of_reference = answers(reference);
    for (auto& twin : comparison.twins)
      twin.differences[figure] =
          &twin == &reference ? Interval{} : difference(answers(twin), of_reference, others);
  };
  for (const auto& figure : about.figures)
    if (figure.of_counts && all_have_counts(comparison, figure.name))
      compare(figure.name, [&](const TwinRun& run) {
        return contributions(train::read_counts(run.result, figure.name, run.folder).examples,
                             figure.of_counts);
      });
  if (!counted) compare(comparison.judging.name, [](const TwinRun& run) { return read_right(run.folder); });
}

}  // namespace quatrain::cli
