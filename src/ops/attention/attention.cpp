// The operators of attention over hypercomplex heads, and which way a call goes.

#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/randint.h>
#include <torch/library.h>

#include <limits>

#include "ops/attention/attention.h"
#include "ops/transforms.h"
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

/// True where a program is being made of the calls: in it an operator may stand for the kernels of its
/// device.
bool is_compiled() {
  using Key = c10::impl::TorchDispatchModeKey;
  for (const Key mode : {Key::FUNCTIONAL, Key::PROXY, Key::FAKE})
    if (c10::impl::TorchDispatchModeTLS::get_mode(mode)) return true;
  return false;
}

/// True for a tensor of the CPU on which no function transform and no cast acts, nor a subclass, unless a
/// program is being made, where all tensors are wrapped.
bool is_plain(const at::Tensor& t) {
  constexpr c10::DispatchKeySet kTransformed{c10::DispatchKey::FuncTorchBatched,
                                             c10::DispatchKey::FuncTorchGradWrapper};
  return t.device().is_cpu() && !has_tangent(t) && !t.key_set().has_any(kTransformed) &&
         (is_compiled() || !(is_traced(t) || at::isTensorSubclassLike(t))) &&
         !at::autocast::is_autocast_enabled(at::kCPU);
}

at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                     std::string_view name, const Optional& padding, double dropout) {
  const algebra::Algebra& algebra = algebra_of(name);
  const bool plain = is_plain(query) && is_plain(key) && is_plain(value) && !in_function_transform();
  const bool recorded =
      at::GradMode::is_enabled() && (query.requires_grad() || key.requires_grad() || value.requires_grad());
  if (!plain || !attends_in_tiles(query, key, value, algebra, recorded)) {
    check_attention(query, key, value, padding, dropout, algebra);
    return std::get<0>(composed::attend(query, key, value, algebra, padding, {dropout}, false));
  }
  Optional seed;
  if (dropout > 0) seed = at::randint(std::numeric_limits<int64_t>::max(), {1}, at::kLong);
  return attention_forward(query, key, value, name, padding, dropout, seed);
}

std::tuple<at::Tensor, at::Tensor> attention_with_weights(const at::Tensor& query, const at::Tensor& key,
                                                          const at::Tensor& value, std::string_view name,
                                                          const Optional& padding, double dropout) {
  const algebra::Algebra& algebra = algebra_of(name);
  check_attention(query, key, value, padding, dropout, algebra);
  return composed::attend(query, key, value, algebra, padding, {dropout}, true);
}

}  // namespace

void check_attention(const at::Tensor& Q, const at::Tensor& K, const at::Tensor& V, const Optional& padding,
                     double dropout, const algebra::Algebra& algebra) {
  TORCH_CHECK(dropout >= 0 && dropout <= 1, "hypercomplex_attention: dropout must be from 0 to 1, got ",
              dropout);
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

void check_attention_call(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                          const Optional& padding, double dropout, const Optional& seed,
                          const algebra::Algebra& algebra) {
  check_attention(query, key, value, padding, dropout, algebra);
  TORCH_CHECK(dropout == 0 || (seed && seed->defined()),
              "hypercomplex_attention: this operator needs a seed with dropout = ", dropout,
              ", a tensor of one integer");
}

at::Tensor attention_forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                             std::string_view algebra, const Optional& padding, double dropout,
                             const Optional& seed) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::hypercomplex_attention_forward", "")
                             .typed<decltype(attention_forward)>();
  return op.call(query, key, value, algebra, padding, dropout, seed);
}

AttentionGradients attention_backward(const at::Tensor& grad, const at::Tensor& query, const at::Tensor& key,
                                      const at::Tensor& value, std::string_view algebra,
                                      const Optional& padding, double dropout, const Optional& seed) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::hypercomplex_attention_backward", "")
                             .typed<decltype(attention_backward)>();
  return op.call(grad, query, key, value, algebra, padding, dropout, seed);
}

at::Tensor dropout_mask(const at::Tensor& query, const at::Tensor& key, int64_t maps, double p,
                        const at::Tensor& seed) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::attention_dropout_mask", "")
                             .typed<decltype(dropout_mask)>();
  const at::NoGradGuard no_grad;  // it has no derivative
  return op.call(query, key, maps, p, seed);
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
      "padding=None, float dropout=0.0, Tensor? seed=None) -> Tensor");
  m.def(
      "hypercomplex_attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, str algebra, "
      "Tensor? padding=None, float dropout=0.0, Tensor? seed=None) -> (Tensor, Tensor, Tensor)");
  m.def("attention_dropout_mask(Tensor query, Tensor key, int maps, float p, Tensor seed) -> Tensor");
}

TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("hypercomplex_attention_forward", &composed::attention);
  m.impl("hypercomplex_attention_backward", &composed::attention_backward);
}

// vmap sees what they are composed of.
TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("cut_heads", &cut_heads);
  m.impl("hypercomplex_attention", &attention);
  m.impl("hypercomplex_attention_with_weights", &attention_with_weights);
}

}  // namespace quatrain::ops
