#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "quatrain/api.h"
#include "quatrain/nn/safetensors.h"
#include "quatrain/train/optimizer.h"
#include "quatrain/train/schedule.h"
#include "quatrain/train/session.h"
#include "quatrain/train/task.h"

namespace quatrain::train {

/// Where a run stands, apart from weights, the optimizer's moments and the generator. All that decides what
/// comes next is a function of this: a checkpoint holds it, and nothing else of the trainer.
struct State {
  int64_t step = 0;             ///< steps made
  int64_t steps_per_epoch = 0;  ///< to notice other data or batch sizes when resuming
  int64_t evaluated_step = -1;  ///< step of the last evaluation
  std::string figure;           ///< of the dev set, which selects
  std::optional<double> last, best;
  int64_t best_step = 0;  ///< 0: none, or none that is still there
  Figures best_figures;
  int64_t bad = 0;  ///< evaluations in a row without a better figure
  bool stopped_early = false;
  PlateauState plateau;
  double window_loss = 0;  ///< sum over examples since the last line of the log
  int64_t window_examples = 0;
  double logged_loss = 0;      ///< of the last line of the log
  int64_t skipped = 0;         ///< steps whose numbers were not finite and that changed nothing
  int64_t skipped_in_row = 0;  ///< the latest of them
  double seconds = 0;
  int64_t metrics_lines = 0;   ///< of metrics.jsonl that are this checkpoint's
  std::string device = "cpu";  ///< the kind that it was trained on
};

/// What training knows of the factors of each learned A (ops::structure_state), by its parameter's name.
nn::NamedTensors structures_of(torch::nn::Module& module);
/// Writes them as structure.safetensors, where there are any.
void write_structures(const nn::NamedTensors& structures, const std::filesystem::path& folder);
/// Gives them to a model that was loaded from the same checkpoint: its factors serve in eval mode, too.
QUATRAIN_API void load_structures(torch::nn::Module& module, const std::filesystem::path& folder);
/// A checkpoint's weights, and these.
void load_model(torch::nn::Module& module, const std::filesystem::path& folder);

/// Writes training.json and training.safetensors: the state, the optimizer's moments, the session's
/// generators.
void save_state(const State& state, const Session& session, const torch::optim::Optimizer& optimizer,
                const NamedParameters& parameters, const std::filesystem::path& folder);

/// The state alone, as training.json.
void write_state(const State& state, const std::filesystem::path& folder);

/// The state alone, from training.json.
QUATRAIN_API State read_state(const std::filesystem::path& folder);

/// The inverse, on any device. Files that do not fit the optimizer are errors. Where the device's generator
/// is not in them, since another device was trained on, it is seeded with the step.
QUATRAIN_API State load_state(const Session& session, torch::optim::Optimizer& optimizer,
                              const NamedParameters& parameters, const std::filesystem::path& folder);

}  // namespace quatrain::train
