#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quatrain/data/text_pair_loader.h"
#include "quatrain/models/pair_attention.h"
#include "quatrain/models/pair_encoder.h"
#include "quatrain/tasks/kind.h"

namespace quatrain::tasks {

/// A network over pairs with its words and labels.
class TextPairModel : public Model {
 public:
  static constexpr const char* kWords = "words.embedding.weight";  ///< the words' vectors

  /// A fresh one, drawn by the recipe, over words of this width.
  TextPairModel(Recipe recipe, data::Vocabulary vocabulary, std::vector<std::string> labels,
                int64_t word_width);

  torch::nn::Module& module() override;
  /// {first, second}: logits (B, labels), or (B, 1) where answers are ranked.
  at::Tensor forward(const std::vector<at::Tensor>& input) override;
  void set_words(const at::Tensor& vectors);

  std::string line_problem(const std::string& line) const override;
  /// Of lines "first, tab, second": the label, then the probability of every label, with tabs between.
  std::vector<std::string> predict(const std::vector<std::string>& lines) override;
  std::vector<at::Tensor> inputs(const std::vector<std::string>& lines) override;
  void store(const std::filesystem::path& folder) const override;
  std::vector<std::string> keeps_own(const std::filesystem::path& checkpoint) const override;
  std::vector<int64_t> head_rows(const std::filesystem::path& checkpoint) const override;
  std::unique_ptr<Model> in_algebra(const std::string& algebra) const override;

  bool ranked() const;
  /// Parameters without words' vectors; of `lstm` without the classifier too, as the papers count.
  int64_t layer_parameters() const;
  /// Logits of all pairs, in their order, on the CPU.
  at::Tensor logits(std::shared_ptr<const data::EncodedTextPairs> pairs,
                    const std::function<void()>& after_batch = {});

  data::Vocabulary vocabulary;
  std::vector<std::string> labels;

 private:
  data::Tokenizer tokenizer() const;
  std::shared_ptr<const data::EncodedTextPairs> encode(const std::vector<std::string>& lines) const;

  int64_t word_width_;
  models::PairAttention attention_{nullptr};  // one of the two
  models::PairEncoder encoder_{nullptr};
};

}  // namespace quatrain::tasks
