#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quatrain/train/task.h"
#include "tasks/seq2seq/data.h"

namespace quatrain::tasks {

/// Trains and scores an encoder-decoder. Figures of a set: loss (nats a token, without label smoothing) and
/// perplexity; where targets are searched for also exact (share of lines that are right to the last
/// character, also by group), bleu, chrf and, of one vocabulary, unchanged (share of lines that equal their
/// source).
class Seq2SeqTask : public train::Task {
 public:
  using Sets = std::map<std::string, PairSet, std::less<>>;

  /// `only_scored`: nothing is trained, and targets are searched for also where the recipe selects by the
  /// loss.
  Seq2SeqTask(std::shared_ptr<Seq2SeqModel> model, std::shared_ptr<const Sets> sets,
              std::shared_ptr<const Checksums> checksums, data::TextForm text,
              std::vector<std::string> groups, bool only_scored);

  torch::nn::Module& model() override { return model_->module(); }
  std::string unit() const override { return "tokens"; }
  int64_t batches() const override { return loader_ ? loader_->batches() : 0; }
  /// The mean over the tokens of a batch, which count as its examples.
  train::BatchLoss loss(int64_t epoch, int64_t index) override;
  std::string describe_batch(int64_t epoch, int64_t index) override;
  bool has(std::string_view split) const override { return sets_->contains(split); }
  train::Evaluation evaluate(std::string_view split, const std::function<void()>& after_batch) override;
  train::Selection selection() const override;
  /// The pieces, and the checksum of each file of the data as FILE.checksum.
  void store(const std::filesystem::path& folder) const override;
  std::string recipe() const override { return to_toml(model_->recipe()); }
  /// train_pairs, vocabulary_size, encoder_parameters.
  train::Figures facts() override;

 private:
  double loss_of(const PairSet& set, const std::function<void()>& after_batch);

  std::shared_ptr<Seq2SeqModel> model_;
  std::shared_ptr<const Sets> sets_;
  std::shared_ptr<const Checksums> checksums_;
  data::TextForm text_;
  std::vector<std::string> groups_;
  std::optional<data::LinePairLoader> loader_;
};

}  // namespace quatrain::tasks
