#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

#include "quatrain/algebra.h"
#include "quatrain/layer_ops.h"

/// Attention over hypercomplex heads: attention.cpp has the operators and chooses, call.cpp reads and checks
/// their arguments; it is composed of ATen calls (composed.cpp, seen.cpp), or on a CPU made tile by tile
/// (cpu.cpp, tiles.cpp), and then recorded by autograd.cpp.
///
/// Shapes: B texts, L queries, S keys, h heads, n components, m values of a component in a head. A head holds
/// n m real values. query: (B, L, n, h, m); key and value: (B, S, n, h, m); result: (B, L, n h m).
namespace quatrain::ops {

/// The arguments of the operators other than query, key and value.
struct AttentionCall {
  AttentionOptions options;
  const algebra::Algebra* algebra = nullptr;
  /// One integer that alone decides what dropout draws; undefined: the device's generator decides.
  at::Tensor seed{};

  /// Of the scores; with one map, whose queries are not mixed, times the table's one entry.
  double scale(const at::Tensor& query) const;
  double scale(int64_t n, int64_t m) const;
  /// The coefficient of Q_i K_j in the score of component c.
  double table(int i, int c, int j) const;
  /// The position of the first query among the keys, clamped to the range that makes a difference.
  c10::SymInt place(const at::Tensor& query, const at::Tensor& key) const;
  /// True where queries see different keys.
  bool differs_by_query() const;
  /// True where ATen's fused attention knows what is hidden: with one map, the keys behind a query's own
  /// place and no others. It hides before it scales: a scale that is not positive would make hidden scores
  /// the largest, or no numbers.
  bool plainly_causal(const at::Tensor& query) const;
};

/// The gradients of query, key and value.
using AttentionGradients = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

/// What is wrong with a call is an error that names the rule and the values.
void check_attention(const AttentionCall& call, const at::Tensor& query, const at::Tensor& key,
                     const at::Tensor& value);
/// The same for the operators below, whose dropout needs a seed.
void check_seeded_attention(const AttentionCall& call, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value);
void check_attention_gradient(const at::Tensor& grad, const at::Tensor& query);

namespace composed {

/// The result and, where they are asked for, the weights before dropout, (B, h, maps, L, S).
std::tuple<at::Tensor, at::Tensor> attend(const AttentionCall& call, const at::Tensor& query,
                                          const at::Tensor& key, const at::Tensor& value, bool need_weights);

/// The operators below for every device and type; both are differentiable too.
QUATRAIN_API at::Tensor attention(const AttentionCall& call, const at::Tensor& query, const at::Tensor& key,
                                  const at::Tensor& value);
AttentionGradients attention_backward(const AttentionCall& call, const at::Tensor& grad,
                                      const at::Tensor& query, const at::Tensor& key,
                                      const at::Tensor& value);

}  // namespace composed

/// hypercomplex_attention_forward, which is recorded where a gradient is wanted, and
/// hypercomplex_attention_backward, through the dispatcher.
QUATRAIN_API at::Tensor attention_forward(const AttentionCall& call, const at::Tensor& query,
                                          const at::Tensor& key, const at::Tensor& value);
QUATRAIN_API AttentionGradients attention_backward(const AttentionCall& call, const at::Tensor& grad,
                                                   const at::Tensor& query, const at::Tensor& key,
                                                   const at::Tensor& value);

/// True where the CPU goes tile by tile, forward or in both passes: float32, n > 1 maps, and a head fits into
/// the caches, if its size is known. One map goes there without a gradient, where ATen's attention would need
/// a large mask.
bool attends_in_tiles(const AttentionCall& call, const at::Tensor& query, const at::Tensor& key,
                      const at::Tensor& value, bool with_gradient);

/// (B, h, maps, L, S): 0 for a weight that is dropped, else 1 / (1 - p), of the type and on the device of
/// `query`.
QUATRAIN_API at::Tensor dropout_mask(const at::Tensor& query, const at::Tensor& key, int64_t maps, double p,
                                     const at::Tensor& seed);

}  // namespace quatrain::ops
