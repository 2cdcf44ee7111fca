#include "models/pair_inputs.h"

#include <torch/types.h>

namespace quatrain::models {

namespace {

at::Tensor padding_of(const char* model, const char* argument, const at::Tensor& tokens, int64_t padding_id) {
  TORCH_CHECK_VALUE(tokens.dim() == 2 && tokens.scalar_type() == at::kLong && tokens.size(0) > 0, model, ": ",
                    argument, " must be int64 (batch, length) with at least one text, got ",
                    tokens.scalar_type(), " ", tokens.sizes());
  const at::Tensor padding = tokens.eq(padding_id), empty = padding.all(1);
  if (empty.any().item<bool>())
    TORCH_CHECK_VALUE(false, model, ": text ", empty.nonzero()[0].item<int64_t>(), " of ", argument,
                      " has no word, only padding (", padding_id, "); leave such pairs out");
  return padding;
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> padding_of_pairs(const char* model, const at::Tensor& first,
                                                    const at::Tensor& second, int64_t padding_id) {
  const at::Tensor of_first = padding_of(model, "first", first, padding_id),
                   of_second = padding_of(model, "second", second, padding_id);
  TORCH_CHECK_VALUE(first.size(0) == second.size(0), model,
                    ": first and second must have as many texts, got ", first.size(0), " and ",
                    second.size(0));
  return {of_first, of_second};
}

}  // namespace quatrain::models
