#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "quatrain/api.h"

namespace quatrain::models {

/// Whose words each hypothesis sees: word `place` of hypothesis i lies in slot table[i, place] of the caches,
/// so that choosing among hypotheses moves no keys.
class QUATRAIN_API HypothesisTable {
 public:
  HypothesisTable(int64_t rows, int64_t capacity, at::Device device);

  /// One more word for each hypothesis, in the slot of its own number. `parents` (rows) int64 are the
  /// hypotheses that they continue, of those of the word before; the first has none, and takes their number
  /// alone.
  void grow(const at::Tensor& parents);

  /// No words, as at first.
  void clear();

  int64_t length() const { return length_; }  ///< words of each hypothesis
  at::Tensor seen() const;                    ///< (rows, length) int32: the slots of its words
  at::Tensor lengths() const;                 ///< (rows) int32, all `length`

 private:
  at::Tensor first_;  // (rows, capacity) int32: the memory that a text begins in
  at::Tensor table_;  // the same of the hypotheses that there are
  int64_t length_ = 0;
};

}  // namespace quatrain::models
