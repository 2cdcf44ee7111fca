// Attention over hypercomplex heads, composed of ATen calls: every device, type and trace, any derivative.

#include <ATen/TensorOperators.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <limits>

#include "ops/attention/attention.h"
#include "ops/constants.h"
#include "ops/transforms.h"
#include "ops/weighted_sum.h"

namespace quatrain::ops::composed {

namespace {

using Optional = std::optional<at::Tensor>;

/// X (B, L, inputs, h, m) -> (B, L, outputs, h, m): output o is the sum of inputs i times coefficient(o, i),
/// which is the table as a matrix (n, n n), or its transpose.
at::Tensor mix(const at::Tensor& X, const algebra::Algebra& algebra, bool transposed) {
  const int n = algebra.n(), outputs = transposed ? n * n : n, inputs = transposed ? n : n * n;
  if (!is_traced(X)) {
    const at::Tensor table = table_tensor(algebra, X.scalar_type(), X.device()).view({n, n * n});
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
      sum.add(parts[static_cast<size_t>(i)], algebra.table(row, column / n, column % n));
    }
    mixed.push_back(sum.or_zeros_like(parts[0]));
  }
  return at::stack(mixed, 2);
}

/// What the scores are made of, and which of them count.
struct Maps {
  int64_t count;
  double scale;        // of the scores
  at::Tensor queries;  // (B, h, maps L, n m), those of map c and component j sum_i A[i, c, j] Q_i
  at::Tensor keys;     // (B, h, S, n m): all maps of a head read the same
  // A text without a single key would make the softmax 0/0: let it see all keys, and zero what comes of it.
  at::Tensor allowed, empty;  // (B, 1, 1, S), (B, 1, 1, 1, 1), or undefined

  Maps(const at::Tensor& Q, const at::Tensor& K, const algebra::Algebra& algebra, const Optional& padding)
      : count(algebra.n()) {
    const int64_t n = Q.sym_size(2).guard_int(__FILE__, __LINE__),
                  m = Q.sym_size(4).guard_int(__FILE__, __LINE__);
    scale = 1 / std::sqrt(static_cast<double>(n * m));
    queries = count == 1 ? Q.permute({0, 3, 1, 2, 4}).flatten(3)
                         : mix(Q, algebra, true)
                               .unflatten(2, {count, n})
                               .permute({0, 4, 2, 1, 3, 5})
                               .flatten(4)
                               .flatten(2, 3);
    keys = K.permute({0, 3, 1, 2, 4}).flatten(3);
    if (!padding || !padding->defined()) return;
    const at::Tensor no_key = padding->all(-1, /*keepdim=*/true);
    allowed = padding->logical_not().logical_or(no_key).unsqueeze(1).unsqueeze(1);
    empty = no_key.unsqueeze(-1).unsqueeze(-1).unsqueeze(-1);
  }

  /// (B, h, maps, L, S)
  at::Tensor weights(const c10::SymInt& length) const {
    at::Tensor scores = at::matmul(queries, keys.transpose(-1, -2)) * scale;
    if (allowed.defined())
      scores = scores.masked_fill(allowed.logical_not(), -std::numeric_limits<double>::infinity());
    return scores.softmax(-1).unflatten_symint(2, {count, length});
  }
  at::Tensor without_empty(const at::Tensor& t) const {
    return empty.defined() ? t.masked_fill(empty, 0) : t;
  }
};

/// The weights (B, h, maps, L, S) after dropout.
at::Tensor dropped(const at::Tensor& weights, const at::Tensor& Q, const at::Tensor& K, int64_t maps,
                   const WeightDropout& dropout) {
  if (dropout.p == 0) return weights;
  if (!dropout.seed) return at::dropout(weights, dropout.p, true);
  return weights * dropout_mask(Q, K, maps, dropout.p, *dropout.seed);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> attend(const at::Tensor& Q, const at::Tensor& K, const at::Tensor& V,
                                          const algebra::Algebra& algebra, const Optional& padding,
                                          const WeightDropout& dropout, bool need_weights) {
  const Maps maps(Q, K, algebra, padding);
  at::Tensor mixed;    // (B, h, L, n, m)
  at::Tensor weights;  // (B, h, maps, L, S)
  if (need_weights || (dropout.p > 0 && (maps.count > 1 || dropout.seed))) {
    weights = maps.weights(Q.sym_size(1));
    const at::Tensor values = V.permute({0, 3, 2, 1, 4});  // (B, h, n, S, m)
    // One map serves all components by broadcasting.
    mixed = at::matmul(dropped(weights, Q, K, maps.count, dropout), values).transpose(2, 3);
    weights = maps.without_empty(weights);
  } else {
    // Each map weights all of V and keeps its own component: more products than needed, and still several
    // times faster than n maps with n copies of K, because the fused kernel never writes the scores.
    const at::Tensor values = V.permute({0, 3, 1, 2, 4}).flatten(3);
    mixed = at::scaled_dot_product_attention(maps.queries, maps.keys, values,
                                             maps.allowed.defined() ? Optional(maps.allowed) : std::nullopt,
                                             dropout.p)
                .unflatten_symint(2, {maps.count, Q.sym_size(1)})
                .unflatten_symint(-1, {Q.sym_size(2), Q.sym_size(4)});
    mixed = maps.count == 1 ? mixed.select(2, 0) : mixed.diagonal(0, 2, 4).transpose(-1, -2);
  }
  return {maps.without_empty(mixed).permute({0, 2, 3, 1, 4}).flatten(2), weights};
}

at::Tensor attention(const at::Tensor& Q, const at::Tensor& K, const at::Tensor& V, std::string_view algebra,
                     const Optional& padding, double dropout, const Optional& seed) {
  const algebra::Algebra& of = algebra::get(algebra);
  check_attention_call(Q, K, V, padding, dropout, seed, of);
  return std::get<0>(attend(Q, K, V, of, padding, {dropout, seed}, false)).contiguous();
}

// With P = softmax(scores), D the mask of dropout and G the gradient of the result, for every map c:
//   dV_c = (D P)^T G_c     dP = D (G_c V_c^T)     dscores = P (dP - sum P dP)
//   dqueries = dscores keys     dkeys = dscores^T queries     dQ_i = sum_{c, j} A[i, c, j] dqueries_{c, j}
AttentionGradients attention_backward(const at::Tensor& grad, const at::Tensor& Q, const at::Tensor& K,
                                      const at::Tensor& V, std::string_view name, const Optional& padding,
                                      double dropout, const Optional& seed) {
  const algebra::Algebra& algebra = algebra::get(name);
  check_attention_call(Q, K, V, padding, dropout, seed, algebra);
  const c10::SymInt n = Q.sym_size(2), heads = Q.sym_size(3), m = Q.sym_size(4);
  const Maps maps(Q, K, algebra, padding);
  const at::Tensor P = maps.weights(Q.sym_size(1));
  const at::Tensor D = dropout > 0 ? dropout_mask(Q, K, maps.count, dropout, seed.value()) : at::Tensor();
  const auto with_mask = [&D](const at::Tensor& t) { return D.defined() ? t * D : t; };
  // (B, L or S, n, h, m) <-> what each map weights, (B, h, maps, L or S, m): one map weights all components.
  const auto to_maps = [&](const at::Tensor& t) {
    return maps.count == 1 ? t.permute({0, 3, 1, 2, 4}).flatten(3).unsqueeze(2) : t.permute({0, 3, 2, 1, 4});
  };
  const auto from_maps = [&](const at::Tensor& t) {
    return maps.count == 1 ? t.squeeze(2).unflatten_symint(-1, {n, m}).permute({0, 2, 3, 1, 4})
                           : t.permute({0, 3, 2, 1, 4});
  };

  const at::Tensor G = maps.without_empty(to_maps(grad.unflatten_symint(-1, {n, heads, m})));
  const at::Tensor dV = at::matmul(with_mask(P).transpose(-1, -2), G);
  const at::Tensor dP = with_mask(at::matmul(G, to_maps(V).transpose(-1, -2)));
  const at::Tensor scores =
      (P * (dP - (P * dP).sum(-1, true)) * maps.scale).flatten(2, 3);  // (B, h, maps L, S)
  const at::Tensor dqueries = at::matmul(scores, maps.keys)
                                  .unflatten_symint(2, {maps.count, Q.sym_size(1)})
                                  .unflatten_symint(-1, {n, m})
                                  .permute({0, 3, 2, 4, 1, 5});  // (B, L, maps, n, h, m)
  const at::Tensor dkeys = at::matmul(scores.transpose(-1, -2), maps.queries).unflatten_symint(-1, {n, m});
  const at::Tensor dQ = maps.count == 1 ? dqueries.squeeze(2) : mix(dqueries.flatten(2, 3), algebra, false);
  return {dQ.contiguous(), dkeys.permute({0, 2, 3, 1, 4}).contiguous(), from_maps(dV).contiguous()};
}

}  // namespace quatrain::ops::composed
