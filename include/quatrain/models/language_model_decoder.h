#pragma once

#include <memory>
#include <vector>

#include "quatrain/models/hypothesis_table.h"
#include "quatrain/models/language_model.h"

namespace quatrain::ops {
class StepMemory;
}

namespace quatrain::nn {
class LayerSteps;
}

namespace quatrain::models {

/// A text of a LanguageModel, word by word, for several hypotheses at once. Keys and values of the words so
/// far stay in memory that is set aside once, as in Seq2SeqDecoder.
///
/// The memory of a step's tensors is kept for the next one: after the third step of as many hypotheses,
/// tensors take none from the system.
///
/// The model is in eval mode. Without gradients.
class QUATRAIN_API LanguageModelDecoder {
 public:
  /// `rows`: the most hypotheses at once; `capacity`: the most words of each.
  LanguageModelDecoder(LanguageModel model, int64_t rows, int64_t capacity);

  /// Puts tokens (rows) int64 behind the hypotheses `parents` (rows) int64, rows of the step before, of which
  /// some may come several times and others not at all; the first step has none. Returns the scores (logits)
  /// of the words that follow, (rows, vocabulary_size).
  at::Tensor step(const at::Tensor& tokens, const at::Tensor& parents);

  /// Begins another text in the same memory.
  void clear() { table_.clear(); }

  /// Words of each hypothesis so far.
  int64_t length() const { return table_.length(); }
  int64_t capacity() const { return capacity_; }

 private:
  LanguageModel model_;
  int64_t rows_, capacity_, weight_bytes_;
  HypothesisTable table_;
  std::shared_ptr<ops::StepMemory> memory_;
  std::shared_ptr<nn::LayerSteps> layers_;
  std::vector<nn::AttentionCache> caches_;  // of each layer
};

}  // namespace quatrain::models
