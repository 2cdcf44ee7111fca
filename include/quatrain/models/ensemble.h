#pragma once

#include <vector>

#include "quatrain/models/seq2seq.h"

namespace quatrain::models {

/// Encoder-decoders over the same vocabularies that translate together: a token has the mean of the
/// probabilities that they give it. One model is an ensemble of itself, and its scores stay as they are.
struct QUATRAIN_API Ensemble {
  Ensemble(Seq2Seq model);  // NOLINT(google-explicit-constructor): whoever takes several takes one
  /// No model at all is an error, and so are vocabularies of different sizes.
  explicit Ensemble(std::vector<Seq2Seq> models);

  at::Device device() const;  ///< of the first, where all must be

  /// What the models' scores (logits), each (.., vocabulary), say together, of the same shape: the logarithms
  /// of the mean probabilities. Elementwise, but for the sums over the vocabulary. With several models
  /// each tensor of `scores` is replaced by its log-probabilities, which saves memory.
  static at::Tensor mean(std::vector<at::Tensor>& scores);

  std::vector<Seq2Seq> models;
};

}  // namespace quatrain::models
