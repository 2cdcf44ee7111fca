#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quatrain/train/task.h"
#include "tasks/speech/data.h"

namespace quatrain::tasks {

/// Trains and scores a recogniser. Figures of a set: loss (nats; of ctc a token's, the mean over utterances),
/// error_rate (edits for each token said; of `utterance` the share of wrong labels), sentence_error_rate, and
/// of `frames` frame_error.
class SpeechTask : public train::Task {
 public:
  SpeechTask(std::shared_ptr<SpeechModel> model, std::shared_ptr<const SpeechSplits> splits,
             Checksums checksums, bool only_scored);

  torch::nn::Module& model() override { return model_->module(); }
  int64_t batches() const override { return order_ ? order_->batches() : 0; }
  train::BatchLoss loss(int64_t epoch, int64_t index) override;
  std::string describe_batch(int64_t epoch, int64_t index) override;
  bool has(std::string_view split) const override { return splits_->contains(split); }
  train::Evaluation evaluate(std::string_view split, const std::function<void()>& after_batch) override;
  train::Selection selection() const override;
  /// The model's parts, and the checksum of each set's recordings and texts.
  void store(const std::filesystem::path& folder) const override;
  std::string recipe() const override { return to_toml(model_->recipe()); }
  /// encoder_parameters, classes, train_hours.
  train::Figures facts() override;

 private:
  struct Scored;
  Scored score(const SpeechSplit& split, const std::vector<int64_t>& utterances, const uint64_t* mask_seed);

  std::shared_ptr<SpeechModel> model_;
  std::shared_ptr<const SpeechSplits> splits_;
  Checksums checksums_;
  std::optional<data::LengthBatches> order_;
};

}  // namespace quatrain::tasks
