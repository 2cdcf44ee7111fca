#pragma once

#include <memory>
#include <optional>

#include "quatrain/train/task.h"
#include "tasks/text_pairs/data.h"
#include "tasks/text_pairs/model.h"

namespace quatrain::tasks {

/// Figures: accuracy and F1, beside them the share of the commonest label, both of each part and label too;
/// where answers are ranked also their mean average precision and so on.
class TextPairTask : public train::Task {
 public:
  TextPairTask(std::shared_ptr<TextPairModel> model, std::shared_ptr<const TextPairSets> sets);

  torch::nn::Module& model() override { return model_->module(); }
  int64_t batches() const override { return loader_ ? loader_->batches() : 0; }
  train::BatchLoss loss(int64_t epoch, int64_t index) override;
  std::string describe_batch(int64_t epoch, int64_t index) override;
  bool has(std::string_view split) const override { return sets_->sets.contains(split); }
  train::Evaluation evaluate(std::string_view split, const std::function<void()>& after_batch) override;
  train::Selection selection() const override;
  void store(const std::filesystem::path& folder) const override;
  std::string recipe() const override { return to_toml(model_->recipe()); }
  train::Figures facts() override;

 private:
  at::Tensor losses(const at::Tensor& logits, const at::Tensor& labels) const;

  std::shared_ptr<TextPairModel> model_;
  std::shared_ptr<const TextPairSets> sets_;
  std::optional<data::TextPairLoader> loader_;
};

}  // namespace quatrain::tasks
