#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace quatrain::models {

/// Where texts are padding, (B, length) bool each. An error that begins with the model's name where the
/// tokens are not (B, length) int64 with one B, or a text has no word.
std::tuple<at::Tensor, at::Tensor> padding_of_pairs(const char* model, const at::Tensor& first,
                                                    const at::Tensor& second, int64_t padding_id);

}  // namespace quatrain::models
