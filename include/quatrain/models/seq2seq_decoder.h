#pragma once

#include <memory>
#include <vector>

#include "quatrain/models/hypothesis_table.h"
#include "quatrain/models/seq2seq.h"

namespace quatrain::ops {
class StepMemory;
}

namespace quatrain::models {

/// The target of a Seq2Seq model, word by word, for several hypotheses at once. Keys and values of the words
/// so far stay in memory that is set aside once; hypotheses that began alike share it through a table, so
/// that choosing among them moves no keys. Keys of a source are made once, whatever the number of its
/// hypotheses.
///
/// The memory of a step's tensors is kept for the next one: after the third step of as many hypotheses,
/// tensors take none from the system.
///
/// The model is in eval mode. Without gradients.
class QUATRAIN_API Seq2SeqDecoder {
 public:
  /// How a model's layers are applied, which takes a while to find out for a short sentence.
  class Plans;

  /// source (sentences, S) int64, source_padding bool or undefined. `rows`: the most hypotheses at once;
  /// `capacity`: the most words of a target, its start included. `plans`: those of a decoder of the same
  /// model, with the modules that it had then, which is not used any more; null: its own. Throws c10::Error
  /// for plans of another model, for padding of another shape, and for a source without words.
  Seq2SeqDecoder(Seq2Seq model, const at::Tensor& source, const at::Tensor& source_padding, int64_t rows,
                 int64_t capacity, std::shared_ptr<Plans> plans = nullptr);

  /// Puts tokens (rows) int64 behind the hypotheses `parents` (rows) int64, rows of the step before, of which
  /// some may come several times and others not at all; the first step has none, and takes for each row the
  /// sentence of its number in `parents`. Returns the scores (logits) of the words that follow, (rows,
  /// vocabulary).
  at::Tensor step(const at::Tensor& tokens, const at::Tensor& parents);
  /// step() without the scores: hidden states (rows, width).
  at::Tensor hidden(const at::Tensor& tokens, const at::Tensor& parents);

  /// Words of each hypothesis so far.
  int64_t length() const { return table_.length(); }
  int64_t capacity() const { return capacity_; }
  /// Bytes of the weights that a step reads, those of the output layer among them (ops::Traffic).
  int64_t bytes_read() const;
  const std::shared_ptr<Plans>& plans() const { return plans_; }

 private:
  Seq2Seq model_;
  int64_t rows_, capacity_;
  std::shared_ptr<Plans> plans_;
  at::Tensor sentences_;  // (rows) int64: of each hypothesis
  HypothesisTable table_;
  std::shared_ptr<ops::StepMemory> memory_;
  at::Tensor source_places_, source_lengths_;     // of each sentence: (sentences, S), (sentences) int32
  std::vector<nn::AttentionCache> self_, cross_;  // of each layer
};

}  // namespace quatrain::models
