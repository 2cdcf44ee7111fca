#pragma once

#include <ATen/core/Tensor.h>

#include "quatrain/api.h"

namespace quatrain::nn {

/// The words of a padded batch, without the padding between them.
///
/// Maps, norms and activations treat each word by itself, so they need no padding: they take the words of all
/// texts as rows (1, words, ...). Attention needs each text's words in their places, (B, L, ...). Where less
/// than a quarter of the places is padding, going back and forth costs what it saves: the rows are then the
/// places themselves, and both functions return what they get. They also do in compiled programs and under
/// function transforms, whose sizes must not hang on values, and on other devices than the CPU.
class QUATRAIN_API Words {
 public:
  /// padding (B, L) bool, true where a place holds no word; undefined where all do.
  explicit Words(const at::Tensor& padding = {});

  /// (B, L, ...) -> (1, words, ...), differentiable to any order. Throws c10::Error where places do not begin
  /// with the padding's sizes.
  at::Tensor rows(const at::Tensor& places) const;
  /// (1, words, ...) -> (B, L, ...), zeros where there is no word; differentiable to any order.
  at::Tensor places(const at::Tensor& rows) const;

  const at::Tensor& padding() const { return padding_; }

 private:
  at::Tensor padding_;
  at::Tensor index_;  // of each row's place; undefined where rows are places
};

}  // namespace quatrain::nn
