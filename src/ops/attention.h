#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>

namespace quatrain::ops::composed {

/// hypercomplex_attention without dropout, of ATen calls; differentiable.
at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     std::string_view algebra, const std::optional<at::Tensor>& padding);

}  // namespace quatrain::ops::composed
