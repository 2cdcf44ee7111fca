#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quatrain/data/vocabulary.h"
#include "quatrain/models/text_classifier.h"
#include "quatrain/tasks/kind.h"

namespace quatrain::tasks {

/// A classifier with its words and labels.
class TextModel : public Model {
 public:
  static constexpr const char* kWords = "embedding.weight";  ///< the words' vectors

  /// A fresh one, drawn by the recipe, over pretrained embeddings of this width (0: none).
  TextModel(Recipe recipe, data::Vocabulary vocabulary, std::vector<std::string> labels,
            int64_t pretrained_width);

  torch::nn::Module& module() override { return *classifier; }
  /// {tokens} or {tokens, padding}: logits (B, labels).
  at::Tensor forward(const std::vector<at::Tensor>& input) override;
  /// The label, then the probability of every label, with tabs between.
  std::vector<std::string> predict(const std::vector<std::string>& lines) override;
  std::vector<at::Tensor> inputs(const std::vector<std::string>& lines) override;
  void store(const std::filesystem::path& folder) const override;
  std::vector<std::string> keeps_own(const std::filesystem::path& checkpoint) const override;
  std::vector<int64_t> head_rows(const std::filesystem::path& checkpoint) const override;
  std::unique_ptr<Model> in_algebra(const std::string& algebra) const override;

  data::Vocabulary vocabulary;
  std::vector<std::string> labels;
  models::TextClassifier classifier{nullptr};

 private:
  std::vector<std::vector<int64_t>> encode(const std::vector<std::string>& lines) const;
  at::Tensor probabilities(const std::vector<std::vector<int64_t>>& texts);
};

}  // namespace quatrain::tasks
