// The operators of attention over hypercomplex heads, and which way a call goes.

#include "ops/attention/attention.h"

#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/constant_pad_nd.h>
#include <torch/library.h>

#include "ops/attention/call.h"
#include "ops/attention/score_products.h"
#include "ops/draws.h"
#include "ops/transforms.h"

namespace quatrain::ops {

namespace {

/// Simplifies a call: keys that causality hides from all queries are cut off, and causality that then hides
/// nothing is dropped, as for a single query after a cache.
struct Trimmed {
  AttentionCall call;
  at::Tensor key, value;

  Trimmed(AttentionCall given, const at::Tensor& query, const at::Tensor& key, const at::Tensor& value)
      : call(std::move(given)), key(key), value(value) {
    AttentionOptions& o = call.options;
    if (!o.causal) return;
    const c10::SymInt queries = query.sym_size(1), keys = key.sym_size(1);
    o.offset = call.place(query, key);
    c10::SymInt seen = keys;
    if (o.offset + queries < keys) {
      seen = o.offset + queries;
      if (seen < 0) seen = 0;
      this->key = key.slice_symint(1, 0, seen);
      this->value = value.slice_symint(1, 0, seen);
      if (o.padding.defined()) o.padding = o.padding.slice_symint(1, 0, seen);
      if (o.mask.defined() && o.mask.dim() > 0 && o.mask.sym_size(-1) != 1)
        o.mask = o.mask.slice_symint(-1, 0, seen);
    }
    if (o.offset + 1 >= seen) o.causal = false, o.offset = 0;
  }
};

bool attends_in_kernel(const Trimmed& t, const at::Tensor& query) {
  const AttentionOptions& o = t.call.options;
  if (in_function_transform() || at::autocast::is_autocast_enabled(at::kCPU)) return false;
  for (const at::Tensor* tensor : {&query, &t.key, &t.value, &o.padding, &o.mask})
    if (tensor->defined() && !suits_operator(*tensor)) return false;
  const bool recorded = at::GradMode::is_enabled();
  if (recorded && o.mask.defined() && o.mask.requires_grad()) return false;
  return attends_in_tiles(
      t.call, query, t.key, t.value,
      recorded && (query.requires_grad() || t.key.requires_grad() || t.value.requires_grad()));
}

int64_t score_multiplications(std::string_view algebra, int64_t n, int64_t m) {
  return ScoreProducts::multiplications(*attention_call({.algebra = std::string(algebra)}).algebra, n, m);
}

at::Tensor attention(const AttentionCall& call, const at::Tensor& query, const at::Tensor& key,
                     const at::Tensor& value) {
  check_attention(call, query, key, value);
  Trimmed trimmed(call, query, key, value);
  if (!attends_in_kernel(trimmed, query))
    return std::get<0>(composed::attend(trimmed.call, query, trimmed.key, trimmed.value, false));
  if (call.options.dropout > 0) trimmed.call.seed = new_seed();
  return attention_forward(trimmed.call, query, trimmed.key, trimmed.value);
}

std::tuple<at::Tensor, at::Tensor> attention_with_weights(const AttentionCall& call, const at::Tensor& query,
                                                          const at::Tensor& key, const at::Tensor& value) {
  check_attention(call, query, key, value);
  const Trimmed trimmed(call, query, key, value);
  auto [result, weights] = composed::attend(trimmed.call, query, trimmed.key, trimmed.value, true);
  const c10::SymInt hidden = key.sym_size(1) - trimmed.key.sym_size(1);
  if (hidden != 0) weights = at::constant_pad_nd_symint(weights, {0, hidden}, 0);
  return {result, weights};
}

}  // namespace

at::Tensor attention_forward(const AttentionCall& call, const at::Tensor& query, const at::Tensor& key,
                             const at::Tensor& value) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::hypercomplex_attention_forward", "")
                             .typed<decltype(Seeded<&composed::attention>::run)>();
  return std::apply([&](const auto&... arguments) { return op.call(query, key, value, arguments...); },
                    arguments_of(call));
}

AttentionGradients attention_backward(const AttentionCall& call, const at::Tensor& grad,
                                      const at::Tensor& query, const at::Tensor& key,
                                      const at::Tensor& value) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::hypercomplex_attention_backward", "")
                             .typed<decltype(Seeded<&composed::attention_backward>::run)>();
  return std::apply([&](const auto&... arguments) { return op.call(grad, query, key, value, arguments...); },
                    arguments_of(call));
}

std::vector<at::Tensor> cut_heads(const at::Tensor& x, int64_t heads, int64_t components, int64_t parts) {
  TORCH_CHECK_VALUE(heads >= 1 && components >= 1 && parts >= 1,
                    "cut_heads: heads, components and parts must be at least 1, got ", heads, ", ",
                    components, " and ", parts);
  TORCH_CHECK(x.layout() == at::kStrided, "cut_heads: x must be dense, got ", x.layout(),
              " (call to_dense())");
  int64_t pieces = 0;
  const bool counted =
      !__builtin_mul_overflow(heads, components, &pieces) && !__builtin_mul_overflow(pieces, parts, &pieces);
  TORCH_CHECK(counted && x.dim() == 3 && x.sym_size(-1) >= pieces && x.sym_size(-1) % pieces == 0,
              "cut_heads: x must be (batch, length, width) with a width that n * heads * parts = ",
              components, " * ", heads, " * ", parts, " divides, got ", x.sym_sizes());
  return x.unflatten_symint(-1, {components, parts, heads, x.sym_size(-1) / pieces}).unbind(-3);
}

at::Tensor hypercomplex_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                  const AttentionOptions& options) {
  return attention(attention_call(options), query, key, value);
}

std::tuple<at::Tensor, at::Tensor> hypercomplex_attention_with_weights(const at::Tensor& query,
                                                                       const at::Tensor& key,
                                                                       const at::Tensor& value,
                                                                       const AttentionOptions& options) {
  return attention_with_weights(attention_call(options), query, key, value);
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  const auto schema = [](const char* name, const char* before, const char* after, const char* result) {
    return std::string(name) + "(" + before + "Tensor query, Tensor key, Tensor value, " +
           kAttentionArguments + after + ") -> " + result;
  };
  m.def("cut_heads(Tensor(a) x, int heads, int components=1, int parts=1) -> Tensor(a)[]", &cut_heads);
  m.def(schema("hypercomplex_attention", "", "", "Tensor").c_str(), &Unseeded<&attention>::run);
  m.def(schema("hypercomplex_attention_with_weights", "", "", "(Tensor, Tensor)").c_str(),
        &Unseeded<&attention_with_weights>::run);
  m.def("score_multiplications(str algebra, int n, int m) -> int", &score_multiplications);
  m.def(schema("hypercomplex_attention_forward", "", ", Tensor? seed=None", "Tensor").c_str());
  m.def(schema("hypercomplex_attention_backward", "Tensor grad, ", ", Tensor? seed=None",
               "(Tensor, Tensor, Tensor)")
            .c_str());
}

TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("hypercomplex_attention_forward", &Seeded<&composed::attention>::run);
  m.impl("hypercomplex_attention_backward", &Seeded<&composed::attention_backward>::run);
}

// vmap sees what they are composed of.
TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("cut_heads", &cut_heads);
  m.impl("hypercomplex_attention", &Unseeded<&attention>::run);
  m.impl("hypercomplex_attention_with_weights", &Unseeded<&attention_with_weights>::run);
}

}  // namespace quatrain::ops
