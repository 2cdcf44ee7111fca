#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::train {

/// Numbers by name, as they are reported and stored.
using Figures = std::map<std::string, double>;

/// The loss of one batch.
struct QUATRAIN_API BatchLoss {
  at::Tensor loss;       ///< scalar, the mean over the batch's examples, with its graph
  int64_t examples = 0;  ///< how many examples the mean is over; also used for examples per second
};

/// Whole numbers of each example, whose sums over any selection of the examples make a figure.
struct QUATRAIN_API ExampleCounts {
  std::vector<std::string> columns;            ///< what they are called
  std::vector<std::vector<int64_t>> examples;  ///< a value for each column, in the data's order
};

/// What the evaluation of a split gives.
struct QUATRAIN_API Evaluation {
  Figures figures;  ///< all that is reported; holds the figure that selects
  /// For each example of the split, in the data's order, the answer and what was right: for a paired
  /// bootstrap. Empty where a task has no such thing.
  std::vector<int64_t> predictions = {}, targets = {};
  /// The same for figures that are no means over examples, by the figure's name.
  std::map<std::string, ExampleCounts> counts = {};
  /// A few examples with their answers, a line each, that are shown while a run trains.
  std::vector<std::string> samples = {};
  /// Texts by the name of the file that keeps them: the answers to the set. A run's folder has those of the
  /// test set.
  std::map<std::string, std::string> files = {};
  /// Lines that are shown below the figures, such as "%WER 15.10 [ 90 / 596, 10 ins, 30 del, 50 sub ]".
  std::vector<std::string> lines = {};
};

/// The figure of the dev set that selects the best checkpoint and stops early.
struct QUATRAIN_API Selection {
  std::string figure = "loss";
  bool higher_is_better = false;
};

/// All that a trainer knows of a task. A new kind of data or model is a new task.
///
/// Batches must be a function of (epoch, index) alone: a resumed run asks for the next one and gets what the
/// run that was never stopped would have got. Randomness inside the model comes from torch's default
/// generator.
class QUATRAIN_API Task {
 public:
  virtual ~Task() = default;

  /// The model that is trained; the same object for the task's life.
  virtual torch::nn::Module& model() = 0;
  /// Batches in an epoch, the same in each; at least 1.
  virtual int64_t batches() const = 0;
  /// What BatchLoss::examples counts, for the rate that is shown while it trains.
  virtual std::string unit() const { return "examples"; }
  /// The loss of a batch, 0 <= index < batches(). The trainer has put the model into training mode, on the
  /// session's device (device_of(), where the batch has to go) and, where asked, autocast on.
  virtual BatchLoss loss(int64_t epoch, int64_t index) = 0;
  /// What identifies a batch in an error message ("examples 3, 17, 20 of the training set").
  virtual std::string describe_batch(int64_t epoch, int64_t index);

  /// True where the task has this split to score: "dev" (needed to select and to stop early), "test", or
  /// another that a trainer does not ask for.
  virtual bool has(std::string_view split) const = 0;
  /// Scores a split. The trainer has put the model into evaluation mode, without gradients. `after_batch` is
  /// to be called now and then, after each batch at best: it shows progress, and it throws where the work
  /// shall end.
  virtual Evaluation evaluate(std::string_view split, const std::function<void()>& after_batch) = 0;
  virtual Selection selection() const = 0;

  /// Writes into a checkpoint's folder what else is needed to use the model (a vocabulary).
  virtual void store(const std::filesystem::path& folder) const;
  /// The effective recipe, stored as recipe.toml; empty: none is.
  virtual std::string recipe() const;
  /// Fixed numbers that belong into result.json ("encoder_parameters", "vocabulary_size").
  virtual Figures facts();
};

}  // namespace quatrain::train
