#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string_view>
#include <tuple>

#include "quatrain/algebra.h"
#include "quatrain/api.h"

/// Attention over hypercomplex heads: attention.cpp has the operators and chooses; it is composed of ATen
/// calls (attention_composed.cpp), or on a CPU made tile by tile (attention_cpu.cpp), and then recorded by
/// attention_autograd.cpp.
///
/// Shapes: B texts, L queries, S keys, h heads, n components, m values of a component in a head. A head holds
/// n m real values. query: (B, L, n, h, m); key and value: (B, S, n, h, m); result: (B, L, n h m).
namespace quatrain::ops {

/// The gradients of query, key and value.
using AttentionGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// Dropout of the weights: with a seed, a tensor of one integer, the draws hang on nothing else; without one
/// on the device's generator.
struct WeightDropout {
  double p = 0;
  std::optional<at::Tensor> seed = std::nullopt;
};

/// What is wrong with a call is an error that names the rule and the sizes. The second is for the operators
/// below, whose dropout needs a seed.
void check_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     const std::optional<at::Tensor>& padding, double dropout,
                     const algebra::Algebra& algebra);
void check_attention_call(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const std::optional<at::Tensor>& padding, double dropout,
                          const std::optional<at::Tensor>& seed, const algebra::Algebra& algebra);

namespace composed {

/// The result and, where they are asked for, the weights before dropout, (B, h, maps, L, S).
std::tuple<at::Tensor, at::Tensor> attend(const at::Tensor& query, const at::Tensor& key,
                                          const at::Tensor& value, const algebra::Algebra& algebra,
                                          const std::optional<at::Tensor>& padding,
                                          const WeightDropout& dropout, bool need_weights);

/// The operators below for every device and type; the second is differentiable too.
QUATRAIN_API at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                  std::string_view algebra, const std::optional<at::Tensor>& padding,
                                  double dropout, const std::optional<at::Tensor>& seed);
AttentionGradients attention_backward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                                      const at::Tensor& value, std::string_view algebra,
                                      const std::optional<at::Tensor>& padding, double dropout,
                                      const std::optional<at::Tensor>& seed);

}  // namespace composed

/// hypercomplex_attention_forward, which is recorded where a gradient is wanted, and
/// hypercomplex_attention_backward, through the dispatcher.
QUATRAIN_API at::Tensor attention_forward(const at::Tensor& query, const at::Tensor& key,
                                          const at::Tensor& value, std::string_view algebra,
                                          const std::optional<at::Tensor>& padding, double dropout,
                                          const std::optional<at::Tensor>& seed);
QUATRAIN_API AttentionGradients attention_backward(const at::Tensor& grad, const at::Tensor& query,
                                                   const at::Tensor& key, const at::Tensor& value,
                                                   std::string_view algebra,
                                                   const std::optional<at::Tensor>& padding, double dropout,
                                                   const std::optional<at::Tensor>& seed);

/// True where the CPU goes tile by tile, forward or in both passes: float32, n > 1 maps, and a head fits into
/// the caches, if its size is known.
bool attends_in_tiles(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                      const algebra::Algebra& algebra, bool with_gradient);

/// (B, h, maps, L, S): 0 for a weight that is dropped, else 1 / (1 - p), of the type and on the device of
/// `query`.
QUATRAIN_API at::Tensor dropout_mask(const at::Tensor& query, const at::Tensor& key, int64_t maps, double p,
                                     const at::Tensor& seed);

}  // namespace quatrain::ops
