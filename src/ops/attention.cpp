// Attention over hypercomplex heads, composed of ATen calls. Without a gradient the device may have a kernel.
//
// Shapes: B texts, L queries, S keys, h heads, n components, m values of a component in a head. A head holds
// n m real values.

#include <ATen/TensorOperators.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/add.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

#include "ops/attention.h"
#include "ops/constants.h"
#include "quatrain/algebra.h"
#include "quatrain/layer_ops.h"

namespace quatrain::ops {

namespace {

using Optional = std::optional<at::Tensor>;

const algebra::Algebra& algebra_of(std::string_view name) {
  try {
    return algebra::get(name);
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK_VALUE(false, "hypercomplex_attention: ", error.what());
  }
}

bool is_traced(const at::Tensor& t) {
  constexpr c10::DispatchKeySet kTraced{c10::DispatchKey::Python, c10::DispatchKey::Functionalize};
  return t.key_set().has_any(kTraced) || c10::impl::TorchDispatchModeTLS::any_modes_set();
}

/// The queries of the n maps: sum_i A[i, c, j] Q_i for map c and component j, (B, L, c, j, h, m).
at::Tensor map_queries(const at::Tensor& Q, const algebra::Algebra& algebra) {
  const int n = algebra.n();
  if (!is_traced(Q)) {
    const at::Tensor table = table_tensor(algebra, Q.scalar_type(), Q.device());
    const at::Tensor mixed = at::matmul(table.view({n, n * n}).t(), Q.flatten(3));
    return mixed.unflatten(2, {n, n}).unflatten_symint(-1, {Q.sym_size(3), Q.sym_size(4)});
  }
  // A constant tensor made inside a trace would belong to no one: the table enters by its numbers.
  const std::vector<at::Tensor> parts = Q.unbind(2);
  std::vector<at::Tensor> queries;
  for (int c = 0; c < n; ++c)
    for (int j = 0; j < n; ++j) {
      at::Tensor sum;
      for (int i = 0; i < n; ++i) {
        const double value = algebra.table(i, c, j);
        if (value == 0) continue;
        const at::Tensor& part = parts[static_cast<size_t>(i)];
        sum = sum.defined() ? at::add(sum, part, value) : value == 1 ? part : part * value;
      }
      queries.push_back(sum.defined() ? sum : at::zeros_like(parts[0]));
    }
  return at::stack(queries, 2).unflatten(2, {n, n});
}

/// The scores' softmax where at least one key counts.
at::Tensor softmax_of(const at::Tensor& scores, const at::Tensor& allowed) {
  if (!allowed.defined()) return scores.softmax(-1);
  return scores.masked_fill(allowed.logical_not(), -std::numeric_limits<double>::infinity()).softmax(-1);
}

void check(const at::Tensor& Q, const at::Tensor& K, const at::Tensor& V, const Optional& padding,
           const algebra::Algebra& algebra) {
  for (const at::Tensor* t : {&Q, &K, &V})
    TORCH_CHECK(t->dim() == 5,
                "hypercomplex_attention: query, key and value must be (batch, length, n, heads, values), as "
                "cut_heads cuts them, got ",
                t->sym_sizes());
  TORCH_CHECK(
      K.sym_sizes() == V.sym_sizes() && K.sym_size(0) == Q.sym_size(0) && K.sym_size(2) == Q.sym_size(2) &&
          K.sym_size(3) == Q.sym_size(3) && K.sym_size(4) == Q.sym_size(4),
      "hypercomplex_attention: query, key and value may differ in the length of the query alone, got ",
      Q.sym_sizes(), ", ", K.sym_sizes(), " and ", V.sym_sizes());
  TORCH_CHECK(algebra.n() == 1 || Q.sym_size(2) == algebra.n(), "hypercomplex_attention: the algebra '",
              algebra.name(), "' needs n = ", algebra.n(), " components, got ", Q.sym_sizes());
  if (!padding || !padding->defined()) return;
  TORCH_CHECK(padding->dim() == 2 && padding->sym_size(0) == K.sym_size(0) &&
                  padding->sym_size(1) == K.sym_size(1) && padding->scalar_type() == at::kBool,
              "hypercomplex_attention: padding must be bool (batch, keys) = (", K.sym_size(0), ", ",
              K.sym_size(1), "), got ", padding->scalar_type(), " ", padding->sym_sizes());
}

/// The result and, where they are asked for, the weights.
std::tuple<at::Tensor, at::Tensor> attend(const at::Tensor& Q, const at::Tensor& K, const at::Tensor& V,
                                          std::string_view name, const Optional& padding, double dropout,
                                          bool need_weights) {
  const algebra::Algebra& algebra = algebra_of(name);
  check(Q, K, V, padding, algebra);
  const int64_t maps = algebra.n();
  const bool drops = dropout > 0;

  // A text without a single key would make the softmax 0/0: let it see all keys, and zero what comes of it.
  at::Tensor allowed, empty;  // (B, 1, 1, S), (B, 1, 1, 1, 1)
  if (padding && padding->defined()) {
    const at::Tensor no_key = padding->all(-1, /*keepdim=*/true);
    allowed = padding->logical_not().logical_or(no_key).unsqueeze(1).unsqueeze(1);
    empty = no_key.unsqueeze(-1).unsqueeze(-1).unsqueeze(-1);
  }

  // All maps of a head read the same keys: their queries stand below each other, (B, h, maps L, d_h).
  const at::Tensor queries =
      maps == 1 ? Q.permute({0, 3, 1, 2, 4}).flatten(3)
                : map_queries(Q, algebra).permute({0, 4, 2, 1, 3, 5}).flatten(4).flatten(2, 3);
  const at::Tensor keys = K.permute({0, 3, 1, 2, 4}).flatten(3);

  at::Tensor mixed;    // (B, h, L, n, m)
  at::Tensor weights;  // (B, h, maps, L, S)
  if (need_weights || (maps > 1 && drops)) {
    const int64_t head_width = (Q.sym_size(2) * Q.sym_size(4)).guard_int(__FILE__, __LINE__);
    const at::Tensor scores = at::matmul(queries, keys.transpose(-1, -2)) / std::sqrt(head_width);
    weights = softmax_of(scores, allowed).unflatten_symint(2, {maps, Q.sym_size(1)});
    const at::Tensor dropped = drops ? at::dropout(weights, dropout, true) : weights;
    const at::Tensor values = V.permute({0, 3, 2, 1, 4});  // (B, h, n, S, m)
    mixed = at::matmul(dropped, values).transpose(2, 3);   // one map serves all components by broadcasting
    if (empty.defined()) weights = weights.masked_fill(empty, 0);
  } else {
    // Each map weights all of V and keeps its own component: more products than needed, and still several
    // times faster than n maps with n copies of K, because the fused kernel never writes the scores.
    const at::Tensor values = V.permute({0, 3, 1, 2, 4}).flatten(3);
    mixed = at::scaled_dot_product_attention(queries, keys, values,
                                             allowed.defined() ? Optional(allowed) : std::nullopt, dropout)
                .unflatten_symint(2, {maps, Q.sym_size(1)})
                .unflatten_symint(-1, {Q.sym_size(2), Q.sym_size(4)});
    mixed = maps == 1 ? mixed.select(2, 0) : mixed.diagonal(0, 2, 4).transpose(-1, -2);
  }
  if (empty.defined()) mixed = mixed.masked_fill(empty, 0);
  return {mixed.permute({0, 2, 3, 1, 4}).flatten(2), weights};
}

/// True where nothing is to be recorded, traced or cast.
bool is_plain_inference(const at::Tensor& t) {
  return !(at::GradMode::is_enabled() && t.requires_grad()) && !t._fw_grad(0).defined() && !is_traced(t) &&
         !at::isTensorSubclassLike(t) && !at::autocast::is_autocast_enabled(t.device().type());
}

at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     std::string_view algebra, const Optional& padding, double dropout) {
  if (dropout == 0 && is_plain_inference(query) && is_plain_inference(key) && is_plain_inference(value) &&
      algebra_of(algebra).n() > 1) {
    check(query, key, value, padding, algebra_of(algebra));
    static const auto forward = c10::Dispatcher::singleton()
                                    .findSchemaOrThrow("quatrain::hypercomplex_attention_forward", "")
                                    .typed<decltype(composed::attention)>();
    return forward.call(query, key, value, algebra, padding);
  }
  return std::get<0>(attend(query, key, value, algebra, padding, dropout, false));
}

std::tuple<at::Tensor, at::Tensor> attention_with_weights(const at::Tensor& query, const at::Tensor& key,
                                                          const at::Tensor& value, std::string_view algebra,
                                                          const Optional& padding, double dropout) {
  return attend(query, key, value, algebra, padding, dropout, true);
}

}  // namespace

at::Tensor composed::attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                               std::string_view algebra, const Optional& padding) {
  return std::get<0>(attend(query, key, value, algebra, padding, 0, false));
}

std::vector<at::Tensor> cut_heads(const at::Tensor& x, int64_t heads, int64_t components, int64_t parts) {
  TORCH_CHECK_VALUE(heads >= 1 && components >= 1 && parts >= 1,
                    "cut_heads: heads, components and parts must be at least 1, got ", heads, ", ",
                    components, " and ", parts);
  TORCH_CHECK(x.dim() == 3 && x.sym_size(-1) % (heads * components * parts) == 0,
              "cut_heads: x must be (batch, length, width) with a width that n * heads * parts = ",
              heads * components * parts, " divides, got ", x.sym_sizes());
  const c10::SymInt values = x.sym_size(-1) / (heads * components * parts);
  return x.unflatten_symint(-1, {components, parts, heads, values}).unbind(-3);
}

at::Tensor hypercomplex_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                  std::string_view algebra, const at::Tensor& padding, double dropout) {
  return attention(query, key, value, algebra, padding, dropout);
}

std::tuple<at::Tensor, at::Tensor> hypercomplex_attention_with_weights(
    const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, std::string_view algebra,
    const at::Tensor& padding, double dropout) {
  return attention_with_weights(query, key, value, algebra, padding, dropout);
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def("cut_heads(Tensor(a) x, int heads, int components=1, int parts=1) -> Tensor(a)[]", &cut_heads);
  m.def(
      "hypercomplex_attention(Tensor query, Tensor key, Tensor value, str algebra=\"real\", Tensor? "
      "padding=None, float dropout=0.0) -> Tensor",
      &attention);
  m.def(
      "hypercomplex_attention_with_weights(Tensor query, Tensor key, Tensor value, str algebra=\"real\", "
      "Tensor? padding=None, float dropout=0.0) -> (Tensor, Tensor)",
      &attention_with_weights);
  m.def(
      "hypercomplex_attention_forward(Tensor query, Tensor key, Tensor value, str algebra, Tensor? "
      "padding=None) "
      "-> Tensor");
}

TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("hypercomplex_attention_forward", &composed::attention);
}

}  // namespace quatrain::ops
