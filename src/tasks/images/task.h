#pragma once

#include <memory>
#include <optional>
#include <string>

#include "quatrain/train/task.h"
#include "tasks/images/data.h"
#include "tasks/images/model.h"

namespace quatrain::tasks {

/// Trains and scores a classifier of pictures. Figures of a set: accuracy, top5 (the right class is among the
/// five likeliest, where there are more than five), loss (nats), and the accuracy of each class.
class ImageTask : public train::Task {
 public:
  ImageTask(std::shared_ptr<ImageModel> model, std::shared_ptr<const ImageSets> sets, Checksums checksums);

  torch::nn::Module& model() override { return model_->module(); }
  int64_t batches() const override { return train_ ? train_->batches() : 0; }
  train::BatchLoss loss(int64_t epoch, int64_t index) override;
  std::string describe_batch(int64_t epoch, int64_t index) override;
  bool has(std::string_view split) const override { return sets_->contains(split); }
  train::Evaluation evaluate(std::string_view split, const std::function<void()>& after_batch) override;
  train::Selection selection() const override;
  /// The names of the classes, and the checksum of each set's pictures.
  void store(const std::filesystem::path& folder) const override;
  std::string recipe() const override { return to_toml(model_->recipe()); }
  /// encoder_parameters, classes, train_examples.
  train::Figures facts() override;

 private:
  std::shared_ptr<ImageModel> model_;
  std::shared_ptr<const ImageSets> sets_;
  Checksums checksums_;
  std::optional<data::ImageLoader> train_;
};

}  // namespace quatrain::tasks
