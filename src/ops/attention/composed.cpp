// Attention over hypercomplex heads, composed of ATen calls: every device, type and trace, any derivative.

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/stack.h>

#include "ops/attention/attention.h"
#include "ops/attention/seen.h"
#include "ops/constants.h"
#include "ops/transforms.h"
#include "ops/weighted_sum.h"

namespace quatrain::ops::composed {

namespace {

/// X (B, L, inputs, h, m) -> (B, L, outputs, h, m): output o is the sum of inputs i times coefficient(o, i),
/// which is the table as a matrix (n, n n), or its transpose.
at::Tensor mix(const at::Tensor& X, const AttentionCall& call, bool transposed) {
  const int n = call.algebra->n(), outputs = transposed ? n * n : n, inputs = transposed ? n : n * n;
  if (!is_traced(X)) {
    at::Tensor table = table_tensor(*call.algebra, X.scalar_type(), X.device());
    if (call.options.order == ProductOrder::key_query) table = table.transpose(0, 2);
    table = table.reshape({n, n * n});
    return at::matmul(transposed ? table.t() : table, X.flatten(3))
        .unflatten_symint(-1, {X.sym_size(3), X.sym_size(4)});
  }
  // A constant tensor made inside a trace would belong to no one: the table enters by its numbers.
  const std::vector<at::Tensor> parts = X.unbind(2);
  std::vector<at::Tensor> mixed;
  for (int o = 0; o < outputs; ++o) {
    WeightedSum sum;
    for (int i = 0; i < inputs; ++i) {
      const int row = transposed ? i : o, column = transposed ? o : i;
      sum.add(parts[static_cast<size_t>(i)], call.table(row, column / n, column % n));
    }
    mixed.push_back(sum.or_zeros_like(parts[0]));
  }
  return at::stack(mixed, 2);
}

/// What the scores are made of, and what they weight.
struct Maps {
  int64_t count;
  double scale;        // of the scores
  Seen seen;           // which of the keys count
  at::Tensor queries;  // (B, h, maps L, n m), those of map c and component j sum_i A[i, c, j] Q_i
  at::Tensor keys;     // (B, h, S, n m): all maps of a head read the same
  at::Tensor values;   // (B, S, n, h, m)

  Maps(const AttentionCall& call, const at::Tensor& Q, const at::Tensor& K, const at::Tensor& V)
      : count(call.algebra->n()), scale(call.scale(Q)), seen(call, Q, K), values(seen.without_hidden(V)) {
    queries = count == 1 ? Q.permute({0, 3, 1, 2, 4}).flatten(3)
                         : mix(Q, call, true)
                               .unflatten(2, {count, count})
                               .permute({0, 4, 2, 1, 3, 5})
                               .flatten(4)
                               .flatten(2, 3);
    keys = seen.without_hidden(K).permute({0, 3, 1, 2, 4}).flatten(3);
  }

  /// (B, h, maps, L, S)
  at::Tensor weights(const c10::SymInt& length) const {
    const at::Tensor scores = at::matmul(queries, keys.transpose(-1, -2)) * scale;
    return seen.weights(scores.unflatten_symint(2, {count, length}));
  }
};

/// The weights (B, h, maps, L, S) after dropout.
at::Tensor dropped(const at::Tensor& weights, const AttentionCall& call, const at::Tensor& Q,
                   const at::Tensor& K, int64_t maps) {
  const double p = call.options.dropout;
  if (p == 0) return weights;
  if (!call.seed.defined()) return at::dropout(weights, p, true);
  return weights * dropout_mask(Q, K, maps, p, call.seed);
}

/// A mask that learns has its gradient by the plain formula: fused attention has none.
bool learns(const at::Tensor& mask) {
  return mask.defined() && ((at::GradMode::is_enabled() && mask.requires_grad()) || has_tangent(mask) ||
                            (in_function_transform() && at::isFloatingType(mask.scalar_type())));
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> attend(const AttentionCall& call, const at::Tensor& Q, const at::Tensor& K,
                                          const at::Tensor& V, bool need_weights) {
  const AttentionOptions& o = call.options;
  const bool one_map = call.algebra->n() == 1;
  const bool fused =
      !need_weights && !learns(o.mask) && (o.dropout == 0 || (one_map && !call.seed.defined()));
  const bool causal = fused && call.plainly_causal(Q);  // it passes over what is hidden
  AttentionCall rest = call;
  if (causal) rest.options.causal = false;
  const Maps maps(rest, Q, K, V);
  at::Tensor mixed;    // (B, h, L, n, m)
  at::Tensor weights;  // (B, h, maps, L, S)
  if (!fused) {
    weights = maps.weights(Q.sym_size(1));
    const at::Tensor values = maps.values.permute({0, 3, 2, 1, 4});  // (B, h, n, S, m)
    // One map serves all components by broadcasting.
    mixed = at::matmul(dropped(weights, call, Q, K, maps.count), values).transpose(2, 3);
    if (need_weights) weights = maps.seen.without_blind(weights, 3);
  } else {
    // Each map weights all of V and keeps its own component: more products than needed, and still several
    // times faster than n maps with n copies of K, because the fused kernel never writes the scores.
    const at::Tensor values = maps.values.permute({0, 3, 1, 2, 4}).flatten(3);
    mixed = at::scaled_dot_product_attention(maps.queries, maps.keys, values, maps.seen.mask(maps.count),
                                             o.dropout, causal, maps.scale)
                .unflatten_symint(2, {maps.count, Q.sym_size(1)})
                .unflatten_symint(-1, {Q.sym_size(2), Q.sym_size(4)});
    mixed = maps.count == 1 ? mixed.select(2, 0) : mixed.diagonal(0, 2, 4).transpose(-1, -2);
  }
  return {maps.seen.without_blind(mixed, 2).permute({0, 2, 3, 1, 4}).flatten(2), weights};
}

at::Tensor attention(const AttentionCall& call, const at::Tensor& Q, const at::Tensor& K,
                     const at::Tensor& V) {
  check_seeded_attention(call, Q, K, V);
  return std::get<0>(attend(call, Q, K, V, false)).contiguous();
}

// With P = softmax(scores), D the mask of dropout and G the gradient of the result, for every map c:
//   dV_c = (D P)^T G_c     dP = D (G_c V_c^T)     dscores = P (dP - sum P dP)
//   dqueries = dscores keys     dkeys = dscores^T queries     dQ_i = sum_{c, j} A[i, c, j] dqueries_{c, j}
AttentionGradients attention_backward(const AttentionCall& call, const at::Tensor& grad, const at::Tensor& Q,
                                      const at::Tensor& K, const at::Tensor& V) {
  check_seeded_attention(call, Q, K, V);
  check_attention_gradient(grad, Q);
  const double dropout = call.options.dropout;
  const c10::SymInt n = Q.sym_size(2), heads = Q.sym_size(3), m = Q.sym_size(4);
  const Maps maps(call, Q, K, V);
  const at::Tensor P = maps.weights(Q.sym_size(1));
  const at::Tensor D = dropout > 0 ? dropout_mask(Q, K, maps.count, dropout, call.seed) : at::Tensor();
  const auto with_mask = [&D](const at::Tensor& t) { return D.defined() ? t * D : t; };
  // (B, L or S, n, h, m) <-> what each map weights, (B, h, maps, L or S, m): one map weights all components.
  const auto to_maps = [&](const at::Tensor& t) {
    return maps.count == 1 ? join_axes(t.permute({0, 3, 1, 2, 4}), 3).unsqueeze(2)
                           : t.permute({0, 3, 2, 1, 4});
  };
  const auto from_maps = [&](const at::Tensor& t) {
    return maps.count == 1 ? split_axis(t.squeeze(2), -1, {n, m}).permute({0, 2, 3, 1, 4})
                           : t.permute({0, 3, 2, 1, 4});
  };

  const at::Tensor G = maps.seen.without_blind(to_maps(split_axis(grad, -1, {n, heads, m})), 3);
  const at::Tensor dV = at::matmul(with_mask(P).transpose(-1, -2), G);
  const at::Tensor dP = with_mask(at::matmul(G, to_maps(maps.values).transpose(-1, -2)));
  const at::Tensor scores =
      join_axes(P * (dP - (P * dP).sum(-1, true)) * maps.scale, 2);  // (B, h, maps L, S)
  const at::Tensor by_map = split_axis(at::matmul(scores, maps.keys), 2, {maps.count, Q.sym_size(1)});
  const at::Tensor dqueries =
      split_axis(by_map, -1, {n, m}).permute({0, 3, 2, 4, 1, 5});  // (B, L, maps, n, h, m)
  const at::Tensor dkeys = split_axis(at::matmul(scores.transpose(-1, -2), maps.queries), -1, {n, m});
  const at::Tensor dQ = maps.count == 1 ? dqueries.squeeze(2) : mix(join_axes(dqueries, 2), call, false);
  return {dQ.contiguous(), dkeys.permute({0, 2, 3, 1, 4}).contiguous(), from_maps(dV).contiguous()};
}

}  // namespace quatrain::ops::composed
