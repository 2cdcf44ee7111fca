#pragma once

#include "nn/layer_steps.h"
#include "quatrain/models/seq2seq.h"
#include "quatrain/nn/words.h"

namespace quatrain::models {

/// The encoder of a Seq2Seq model in a decoder: without gradients, and for one batch after the other.
///
/// The layers of short sources are applied as those of a step (nn::LayerSteps) to all words at once, each of
/// which sees the words of its own source. Their operators would take longer than their arithmetic with a
/// single sentence and a small model. Words of longer sources see so many that tiles of them, as operators
/// have, read less memory than rows do.
class QUATRAIN_API SourceEncoder {
 public:
  explicit SourceEncoder(const Seq2Seq& model);

  /// What encode_words() gives. source: (B, L) int64; lengths: (B) int32, the words of each source, which
  /// come before its padding.
  at::Tensor operator()(const at::Tensor& source, const nn::Words& words, const at::Tensor& lengths);

  /// True where the last batch went through the kernels.
  bool by_kernels() const { return by_kernels_; }

 private:
  at::Tensor apply_kernels(const at::Tensor& rows, int64_t places, const at::Tensor& lengths);

  Seq2Seq model_;
  nn::LayerSteps layers_;
  bool by_kernels_ = false;
};

}  // namespace quatrain::models
