#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "quatrain/train/task.h"
#include "tasks/language_model/data.h"

namespace quatrain::tasks {

/// Trains and scores a language model. Figures of a set: loss (nats a token), perplexity and, where tokens
/// are characters or pieces of words, word_perplexity, by the words between white space.
class LanguageTask : public train::Task {
 public:
  LanguageTask(std::shared_ptr<TextPredictor> model, std::shared_ptr<const TextSets> sets,
               std::shared_ptr<const Checksums> checksums, bool only_scored);

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
  /// train_tokens, vocabulary_size, encoder_parameters.
  train::Figures facts() override;

 private:
  std::shared_ptr<TextPredictor> model_;
  std::shared_ptr<const TextSets> sets_;
  std::shared_ptr<const Checksums> checksums_;
  std::optional<data::WindowLoader> loader_;
};

}  // namespace quatrain::tasks
