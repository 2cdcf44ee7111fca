#include "quatrain/nn/words.h"

#include <torch/types.h>

#include "quatrain/word_ops.h"

namespace quatrain::nn {

Words::Words(const at::Tensor& padding)
    : padding_(padding), index_(padding.defined() ? ops::index_of_words(padding) : at::Tensor()) {}

at::Tensor Words::rows(const at::Tensor& places) const {
  if (!index_.defined()) return places;
  TORCH_CHECK(places.dim() >= 2 && places.sizes().slice(0, 2) == padding_.sizes(),
              "Words: places must begin with the padding's sizes ", padding_.sizes(), ", got ",
              places.sizes());
  return ops::rows_of_words(places, index_);
}

at::Tensor Words::places(const at::Tensor& rows) const {
  if (!index_.defined()) return rows;
  return ops::places_of_words(rows, index_, padding_.size(0), padding_.size(1));
}

}  // namespace quatrain::nn
