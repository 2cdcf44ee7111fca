// What a call of attention says: its arguments read and checked.

#include "ops/attention/call.h"

#include <ATen/autocast_mode.h>

#include <cmath>
#include <stdexcept>

#include "ops/find_algebra.h"
#include "support/enum_names.h"

namespace quatrain::ops {

namespace {

constexpr EnumNames<ProductOrder, 2> kOrders{
    {{ProductOrder::query_key, "query_key"}, {ProductOrder::key_query, "key_query"}}};

void check_strided(const char* argument, const at::Tensor& t, const at::Tensor& query) {
  TORCH_CHECK(t.layout() == at::kStrided, "hypercomplex_attention: ", argument, " must be dense, got ",
              t.layout(), " (call to_dense())");
  TORCH_CHECK(t.device() == query.device(), "hypercomplex_attention: ", argument, " is on ", t.device(),
              ", query on ", query.device(), "; move one");
}

void check_mask(const at::Tensor& mask, const at::Tensor& Q, const at::Tensor& K) {
  check_strided("mask", mask, Q);
  const c10::SymInt wanted[] = {Q.sym_size(0), Q.sym_size(3), Q.sym_size(1), K.sym_size(1)};
  bool fits = mask.dim() <= 4 && (mask.scalar_type() == at::kBool || at::isFloatingType(mask.scalar_type()));
  for (int64_t axis = -1; fits && axis >= -mask.dim(); --axis)
    fits = mask.sym_size(axis) == 1 || mask.sym_size(axis) == wanted[4 + axis];
  TORCH_CHECK(fits,
              "hypercomplex_attention: mask must be bool or floating point and broadcast to (batch, heads, "
              "queries, keys) = (",
              wanted[0], ", ", wanted[1], ", ", wanted[2], ", ", wanted[3], "), got ", mask.scalar_type(),
              " ", mask.sym_sizes());
}

}  // namespace

const char* name(ProductOrder order) {
  return name_of(kOrders, order);
}

ProductOrder parse_product_order(std::string_view name) {
  return parse_name(kOrders, "order", name);
}

double AttentionCall::scale(const at::Tensor& query) const {
  const auto size = [&](int64_t axis) { return query.sym_size(axis).guard_int(__FILE__, __LINE__); };
  return options.scale ? scale(1, 1) : scale(size(2), size(4));
}

double AttentionCall::scale(int64_t n, int64_t m) const {
  const double one_map = algebra->n() == 1 ? algebra->table(0, 0, 0) : 1;
  return options.scale ? *options.scale * one_map : one_map / std::sqrt(static_cast<double>(n * m));
}

double AttentionCall::table(int i, int c, int j) const {
  return options.order == ProductOrder::query_key ? algebra->table(i, c, j) : algebra->table(j, c, i);
}

c10::SymInt AttentionCall::place(const at::Tensor& query, const at::Tensor& key) const {
  if (options.offset.is_heap_allocated()) return options.offset;  // a trace's: its sums do not overflow
  return options.offset.max(-query.sym_size(1)).min(key.sym_size(1));
}

bool AttentionCall::differs_by_query() const {
  const at::Tensor& mask = options.mask;
  return options.causal || (mask.defined() && mask.dim() >= 2 && mask.sym_size(-2) != 1);
}

bool AttentionCall::plainly_causal(const at::Tensor& query) const {
  return options.causal && options.offset == 0 && !options.padding.defined() && !options.mask.defined() &&
         algebra->n() == 1 && scale(query) > 0;
}

AttentionCall unseeded_attention_call(std::string_view algebra, const OptionalTensor& padding, double dropout,
                                      const OptionalTensor& mask, bool causal, c10::SymInt offset,
                                      std::optional<double> scale, std::string_view order) {
  return attention_call({.algebra = std::string(algebra),
                         .padding = padding.value_or(at::Tensor()),
                         .mask = mask.value_or(at::Tensor()),
                         .causal = causal,
                         .offset = std::move(offset),
                         .scale = scale,
                         .order = parse_product_order(order),
                         .dropout = dropout});
}

AttentionCall seeded_attention_call(std::string_view algebra, const OptionalTensor& padding, double dropout,
                                    const OptionalTensor& mask, bool causal, c10::SymInt offset,
                                    std::optional<double> scale, std::string_view order,
                                    const OptionalTensor& seed) {
  AttentionCall call =
      unseeded_attention_call(algebra, padding, dropout, mask, causal, std::move(offset), scale, order);
  call.seed = seed.value_or(at::Tensor());
  return call;
}

AttentionCall attention_call(const AttentionOptions& options) {
  TORCH_CHECK(std::isfinite(options.scale.value_or(0)), "hypercomplex_attention: scale must be finite, got ",
              options.scale.value_or(0));
  return {options, &find_algebra("hypercomplex_attention", options.algebra)};
}

std::tuple<std::string_view, OptionalTensor, double, OptionalTensor, bool, c10::SymInt, std::optional<double>,
           std::string_view, OptionalTensor>
arguments_of(const AttentionCall& call) {
  const auto optional = [](const at::Tensor& t) { return t.defined() ? OptionalTensor(t) : std::nullopt; };
  const AttentionOptions& o = call.options;
  return {o.algebra, optional(o.padding), o.dropout,          optional(o.mask), o.causal, o.offset,
          o.scale,   name(o.order),       optional(call.seed)};
}

void check_attention(const AttentionCall& call, const at::Tensor& Q, const at::Tensor& K,
                     const at::Tensor& V) {
  const AttentionOptions& o = call.options;
  const algebra::Algebra& algebra = *call.algebra;
  TORCH_CHECK(o.dropout >= 0 && o.dropout <= 1, "hypercomplex_attention: dropout must be from 0 to 1, got ",
              o.dropout);
  TORCH_CHECK(o.causal || o.offset == 0,
              "hypercomplex_attention: offset is the place of the first query for causal = true, got ",
              o.offset, " without it");
  for (const auto& [argument, t] : {std::pair("query", &Q), {"key", &K}, {"value", &V}}) {
    check_strided(argument, *t, Q);
    TORCH_CHECK(t->dim() == 5,
                "hypercomplex_attention: query, key and value must be (batch, length, n, heads, values), as "
                "cut_heads cuts them, got ",
                t->sym_sizes());
    TORCH_CHECK(at::isFloatingType(t->scalar_type()), "hypercomplex_attention: ", argument,
                " must be floating point, got ", t->scalar_type());
    TORCH_CHECK(t->scalar_type() == Q.scalar_type() || at::autocast::is_autocast_enabled(Q.device().type()),
                "hypercomplex_attention: query is ", Q.scalar_type(), ", ", argument, " ", t->scalar_type(),
                "; convert one");
  }
  TORCH_CHECK(
      K.sym_sizes() == V.sym_sizes() && K.sym_size(0) == Q.sym_size(0) && K.sym_size(2) == Q.sym_size(2) &&
          K.sym_size(3) == Q.sym_size(3) && K.sym_size(4) == Q.sym_size(4),
      "hypercomplex_attention: query, key and value may differ in the length of the query alone, got ",
      Q.sym_sizes(), ", ", K.sym_sizes(), " and ", V.sym_sizes());
  TORCH_CHECK(algebra.n() == 1 || Q.sym_size(2) == algebra.n(), "hypercomplex_attention: the algebra '",
              algebra.name(), "' needs n = ", algebra.n(), " components, got ", Q.sym_sizes());
  if (o.mask.defined()) check_mask(o.mask, Q, K);
  if (!o.padding.defined()) return;
  check_strided("padding", o.padding, Q);
  TORCH_CHECK(o.padding.dim() == 2 && o.padding.sym_size(0) == K.sym_size(0) &&
                  o.padding.sym_size(1) == K.sym_size(1) && o.padding.scalar_type() == at::kBool,
              "hypercomplex_attention: padding must be bool (batch, keys) = (", K.sym_size(0), ", ",
              K.sym_size(1), "), got ", o.padding.scalar_type(), " ", o.padding.sym_sizes());
}

void check_seeded_attention(const AttentionCall& call, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value) {
  check_attention(call, query, key, value);
  if (call.options.dropout == 0) return;
  TORCH_CHECK(call.seed.defined() && call.seed.layout() == at::kStrided && call.seed.sym_numel() == 1 &&
                  at::isIntegralType(call.seed.scalar_type(), /*includeBool=*/false),
              "hypercomplex_attention: this operator needs a seed with dropout = ", call.options.dropout,
              ", a tensor of one integer");
}

void check_attention_gradient(const at::Tensor& grad, const at::Tensor& query) {
  check_strided("grad", grad, query);
  TORCH_CHECK(
      grad.dim() == 3 && at::isFloatingType(grad.scalar_type()) && grad.sym_size(0) == query.sym_size(0) &&
          grad.sym_size(1) == query.sym_size(1) &&
          grad.sym_size(2) == query.sym_size(2) * query.sym_size(3) * query.sym_size(4),
      "hypercomplex_attention: grad must be floating point and of the result's shape (batch, queries, "
      "n heads values), got ",
      grad.scalar_type(), " ", grad.sym_sizes(), " for a query ", query.sym_sizes());
}

}  // namespace quatrain::ops
