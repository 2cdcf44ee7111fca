#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "cli/statistics.h"
#include "quatrain/tasks/kind.h"
#include "quatrain/train/session.h"
#include "quatrain/train/trainer.h"

namespace quatrain::cli {

/// One run of a twin.
struct TwinRun {
  uint64_t seed = 0;
  std::filesystem::path folder;
  train::Result result;
};

/// A learning rate that a twin may take, with the runs that tell how good it is.
struct RateTrial {
  std::string rate;  ///< as it was written
  std::vector<TwinRun> runs;
  std::optional<double> dev;  ///< the main figure of the dev set, averaged over the runs; none: it diverged
};

/// Median seconds, measured in turns with the other twins.
struct TwinTimes {
  double training_step = 0;
  double inference_1 = 0;
  double inference_32 = 0;
};

/// A twin, trained with every seed.
struct Twin {
  tasks::Recipe recipe;           ///< with the rate that was chosen
  std::vector<RateTrial> trials;  ///< where `compare.rates` has rates to choose from
  std::string rate;               ///< the chosen one
  std::vector<TwinRun> runs;
  /// How much higher figures of the test set are than the reference's: of the judging one, and of others
  /// whose counts all runs have. The intervals of all twins for one figure hold together.
  std::map<std::string, Interval> differences;
  TwinTimes times;
};

/// All that `compare` found.
struct Comparison {
  std::string name;
  std::filesystem::path folder;
  std::vector<uint64_t> seeds;
  std::vector<Twin> twins;
  size_t reference = 0;            ///< the real twin, or the first
  tasks::Figure judging;           ///< of the test set, by whose differences the twins are judged
  bool judged = false;             ///< the runs have what this needs
  std::vector<bench::Row> layers;  ///< single ones beside torch's
};

/// "1,2,3": how --seeds takes them, and how they are stored.
std::string list_of_seeds(const std::vector<uint64_t>& seeds);
/// Throws where another process trains in a folder below the comparison's, or the checkpoint there that
/// training would go on from is damaged: what can be seen before data are read.
void refuse_unusable_runs(const Comparison& comparison);
/// Throws a RecipeError where a folder below the comparison's holds a run of another recipe.
void check_runs(const Comparison& comparison);
/// Throws where a twin cannot start from the weights that the recipe names, before any is trained.
void check_weights(const Comparison& comparison, const tasks::Data& data);
/// Trains what is not trained yet: the trials of the rates first, then each twin with its best.
void train_twins(Comparison& comparison, const tasks::Data& data, const train::Session& session);
/// Finds the figure that the runs can be judged by, and sets the differences of the twins where there is one.
void find_differences(Comparison& comparison);
/// Measures every twin's first run on the CPU, wherever it was trained: a training step over its own batches,
/// and inference of test examples at batch 1 and 32 in evaluation mode.
void measure_twins(Comparison& comparison, const tasks::Data& data);

/// The table for people.
std::string report(const Comparison& comparison);
/// Everything, for programs.
nlohmann::ordered_json to_json(const Comparison& comparison);

}  // namespace quatrain::cli
