#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quatrain/data/pieces.h"
#include "quatrain/models/language_model.h"
#include "quatrain/tasks/kind.h"
#include "tasks/language_model/options.h"

namespace quatrain::tasks {

/// A language model with its vocabulary.
class TextPredictor : public Model {
 public:
  TextPredictor(Recipe recipe, data::Pieces pieces);

  torch::nn::Module& module() override { return *network; }
  /// {tokens} (B, L): scores of the tokens that follow, (B, L, vocabulary).
  at::Tensor forward(const std::vector<at::Tensor>& input) override;
  /// What follows each line, or its log-probability and perplexity, as [generate] says. A line without tokens
  /// has an empty answer, and so has the score of a single token that no mark of an end precedes.
  std::vector<std::string> predict(const std::vector<std::string>& lines) override;
  /// Each line as a prompt is read, behind the mark of the line before where lines have marks; kPad behind.
  std::vector<at::Tensor> inputs(const std::vector<std::string>& lines) override;
  std::vector<std::string> texts(const std::vector<std::vector<int64_t>>& numbers) const override;
  void store(const std::filesystem::path& folder) const override;
  std::unique_ptr<Model> in_algebra(const std::string& algebra) const override;
  std::string summary() const override;

  /// Reads what store() wrote.
  static data::Pieces load_pieces(const std::filesystem::path& folder);
  const LanguageOptions& own() const { return recipe_.own<LanguageOptions>(); }

  data::Pieces pieces;
  models::LanguageModel network{nullptr};

 private:
  /// Empty of a line without tokens.
  std::vector<int64_t> prompt(const std::string& line) const;
  std::vector<std::string> continued(const std::vector<std::string>& lines);
  std::vector<std::string> scored(const std::vector<std::string>& lines);

  int64_t cut_ = 0, written_ = 0, read_ = 0;  // of predict(): prompts that were cut, tokens
  double seconds_ = 0;
};

}  // namespace quatrain::tasks
