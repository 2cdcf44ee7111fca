#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymInt.h>

#include "quatrain/api.h"

/// The words of a padded batch without the padding between them, for what treats each word by itself.
/// `nn::Words` puts the three together. Errors: see ops.h.
namespace quatrain::ops {

/// Where the words of a batch are, (words) int64, counted through its places text by text; padding (B, L)
/// bool, true where there is no word. Undefined (None in Python) where leaving padding out does not pay,
/// because it is less than a quarter of the places or on another device than the CPU, which would be waited
/// for; and where it cannot be done: in a compiled or traced program, whose sizes must not hang on values,
/// under function transforms, and for subclasses of tensors.
QUATRAIN_API at::Tensor index_of_words(const at::Tensor& padding);

/// places (B, L, ...), index (words), no place twice -> the words as rows (1, words, ...). Differentiable to
/// any order.
QUATRAIN_API at::Tensor rows_of_words(const at::Tensor& places, const at::Tensor& index);

/// rows (1, words, ...), index (words), no place twice -> (B, L, ...), zeros where there is no word.
/// Differentiable to any order.
QUATRAIN_API at::Tensor places_of_words(const at::Tensor& rows, const at::Tensor& index, c10::SymInt texts,
                                        c10::SymInt length);

}  // namespace quatrain::ops
