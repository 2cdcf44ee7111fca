#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quatrain/data/length_batches.h"
#include "quatrain/data/speech_set.h"
#include "quatrain/tasks/kind.h"
#include "tasks/speech/model.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {

/// One set of utterances.
struct SpeechSplit {
  std::shared_ptr<const data::SpeechSet> set;
  std::vector<std::vector<std::string>> tokens;  ///< of each utterance, as it is scored
  std::vector<std::vector<int64_t>> targets;     ///< their classes; -1 of those that the training set has not
  std::vector<int64_t> usable;                   ///< numbers in the set, to be trained on or heard
  std::map<std::string, data::Normalisation> speakers;  ///< empty unless each is normalised

  /// Of a number in the set: those of its utterance, whatever its speed.
  const std::vector<int64_t>& targets_of(int64_t i) const {
    return targets[static_cast<size_t>(i) % targets.size()];
  }
};
using SpeechSplits = std::map<std::string, SpeechSplit, std::less<>>;

/// Recordings as features, and what is learned of the training set beside weights.
class SpeechData : public Data {
 public:
  SpeechData(Recipe recipe, SpeechSplits splits, SpeechParts parts, data::Normalisation training,
             std::vector<std::string> notes, Checksums checksums, bool only_scored)
      : Data(std::move(recipe)),
        splits_(std::make_shared<SpeechSplits>(std::move(splits))),
        parts_(std::move(parts)),
        training_(std::move(training)),
        notes_(std::move(notes)),
        checksums_(std::move(checksums)),
        only_scored_(only_scored) {}

  bool has(std::string_view split) const override { return splits_->contains(split); }
  /// {rows, batch_sizes}.
  std::vector<Input> inputs(std::string_view split, const Recipe& recipe, int64_t size,
                            int64_t count) const override;
  std::unique_ptr<Model> make_model(const Recipe& recipe) const override;
  std::unique_ptr<train::Task> make_task(std::shared_ptr<Model> model) const override;
  std::vector<std::string> notes() const override { return notes_; }
  Checksums checksums() const override { return checksums_; }

 private:
  std::shared_ptr<const SpeechSplits> splits_;
  SpeechParts parts_;
  data::Normalisation training_;
  std::vector<std::string> notes_;
  Checksums checksums_;  // of each set's recordings
  bool only_scored_;
};

/// See Kind::load_data.
std::unique_ptr<Data> load_speech_data(Recipe recipe, const DataRequest& request);

/// The sound of a set, with what there is to say of it. It needs no labels.
struct SpeechSound {
  std::optional<SpeechSplit> split;  ///< none where the data do not have the set
  std::vector<std::string> notes;
};
/// `folder`: of the data; empty: that of the model's recipe.
SpeechSound load_sound(const std::string& set, const std::string& folder, const SpeechModel& model);

/// The energies of a number in the set with their derivatives, as they are before they are normalised.
at::Tensor features_of(const SpeechTaskOptions& own, const data::SpeechSet& set, int64_t i);

/// How a set's usable utterances are cut into batches; of each batch the places in `usable`.
data::LengthBatches training_order(const SpeechSplit& split, const Recipe& recipe);
/// In a fixed order, at most `most` utterances at a time, fewer of long ones.
data::LengthBatches scoring_order(const SpeechSplit& split, int64_t most);

/// Makes a set's utterances into rows for the network, by what its buffers hold when this is made. Set and
/// model must live as long.
class SpeechRows {
 public:
  SpeechRows(const SpeechSplit& split, const SpeechModel& model);

  /// (rows, inputs) of a number in the set; with masks drawn from a seed where one is given.
  at::Tensor operator()(int64_t i, const uint64_t* mask_seed = nullptr) const;

 private:
  const SpeechSplit& split_;
  const SpeechModel& model_;
  std::optional<data::Normalisation> training_;  // where features are normalised by it
};

}  // namespace quatrain::tasks
