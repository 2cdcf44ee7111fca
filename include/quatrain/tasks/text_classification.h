#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/loader.h"
#include "quatrain/data/vocabulary.h"
#include "quatrain/models/text_classifier.h"
#include "quatrain/train/task.h"

namespace quatrain::tasks {

/// What a TextClassification is made of.
struct QUATRAIN_API TextClassificationOptions {
  int64_t batch_size = 32;
  int64_t evaluation_batch_size = 256;
  int64_t max_length = 0;      ///< longer texts are cut off there; 0: no limit
  double label_smoothing = 0;  ///< share of the target spread over all labels
  uint64_t seed = 0;           ///< of the order of batches
  std::string recipe;          ///< the effective recipe, stored with checkpoints
  /// What tells the data from all others, by name: stored with checkpoints as NAME.checksum, and compared
  /// where a run goes on.
  std::map<std::string, std::string> checksums;
};

/// Figures of predictions: accuracy, loss, majority (share of the commonest label), and where the data have
/// groups, `accuracy/GROUP=g`, `majority/GROUP=g`, `count/GROUP=g` for each group g ("attractors").
class QUATRAIN_API TextClassification : public train::Task {
 public:
  /// The splits are encoded here and need not be kept. Without a dev set training still runs, with nothing to
  /// select by; without a training set the others can be scored.
  TextClassification(models::TextClassifier model, const data::Splits& splits, data::Vocabulary vocabulary,
                     TextClassificationOptions options = {});
  ~TextClassification() override;

  torch::nn::Module& model() override;
  int64_t batches() const override;
  train::BatchLoss loss(int64_t epoch, int64_t index) override;
  std::string describe_batch(int64_t epoch, int64_t index) override;
  bool has(std::string_view split) const override;
  train::Evaluation evaluate(std::string_view split, const std::function<void()>& after_batch) override;
  train::Selection selection() const override;
  /// vocabulary.txt and labels.txt (a label a line), and the checksums.
  void store(const std::filesystem::path& folder) const override;
  std::string recipe() const override;
  /// encoder_parameters, vocabulary_size, train_examples.
  train::Figures facts() override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace quatrain::tasks
