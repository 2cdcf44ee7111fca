// The operators `linear` and `linear_backward`: schema, checks, Meta, Autocast, and the C++ functions.
//
// Both belong to one form, Q(g, x, S, A) = sum_i,a,b A[i,a,b] g_a . (S_i x_b): linear is dQ/dg,
// linear_backward the other three partial derivatives. So the two are closed under differentiation
// (linear_autograd.cpp).

#include "ops/linear/linear.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <torch/library.h>

#include "ops/engine/planner.h"
#include "ops/map/prepared.h"

namespace quatrain::ops {

namespace {

constexpr std::string_view kLearned = "learned", kFactored = "factored";

void check_floating(const char* function, const char* argument, const at::Tensor& t) {
  TORCH_CHECK(at::isFloatingType(t.scalar_type()), function, ": ", argument, " must be floating point, got ",
              t.scalar_type());
}

}  // namespace

const algebra::Algebra* Call::fixed() const {
  if (learned()) return nullptr;
  try {
    return &algebra::get(algebra);
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK_VALUE(false, "linear: ", error.what());
  }
}

at::Tensor Call::structure() const {
  return factored() ? at::einsum("ir,ar,br->iab", {factor(0), factor(2), factor(1)}) : *A;
}

at::Tensor Call::structure_gradient(const at::Tensor& gradient) const {
  if (!factored()) return gradient;
  const at::Tensor U = factor(0).to(gradient.scalar_type()), V = factor(1).to(gradient.scalar_type()),
                   W = factor(2).to(gradient.scalar_type());
  return at::stack({at::einsum("iab,ar,br->ir", {gradient, W, V}),
                    at::einsum("iab,ir,ar->br", {gradient, U, W}),
                    at::einsum("iab,ir,br->ar", {gradient, U, V})});
}

int64_t Call::rank() const {
  if (const algebra::Algebra* known = fixed()) return known->factors().rank;
  return factored() ? A->size(2) : factors.empty() ? 0 : factors[0].size(1);
}

at::Tensor Call::factor(int64_t which) const {
  return factored() ? A->select(0, which) : factors[static_cast<size_t>(which)];
}

Call make_call(std::string_view algebra, const std::optional<at::Tensor>& A,
               const std::optional<at::Tensor>& U, const std::optional<at::Tensor>& V,
               const std::optional<at::Tensor>& W, std::string_view way, std::optional<at::ScalarType> dtype,
               bool constant) {
  Call call;
  call.algebra = std::string(algebra);
  if (A && A->defined()) call.A = A;
  const bool has[3] = {U && U->defined(), V && V->defined(), W && W->defined()};
  TORCH_CHECK(has[0] == has[1] && has[1] == has[2],
              "linear: factors are U, V and W together, or none of them");
  if (has[0]) call.factors = {*U, *V, *W};
  call.way = requested_way(parse_way(way));
  call.dtype = dtype;
  call.constant = constant;
  return call;
}

void check_linear(const char* function, const at::Tensor& x, const at::Tensor& S, const Call& call) {
  TORCH_CHECK(call.learned() == (call.algebra == kLearned || call.algebra == kFactored), function,
              ": A goes with algebra = 'learned' or 'factored', got algebra = '", call.algebra, "' ",
              call.learned() ? "with" : "without", " A");
  TORCH_CHECK(S.dim() == 3, function, ": S must have the shape (n, out_features / n, in_features / n), got ",
              S.sym_sizes());
  TORCH_CHECK(x.dim() >= 1, function, ": x must have at least one axis, its last one of in_features values");
  check_floating(function, "x", x);
  check_floating(function, "S", S);
  if (call.learned()) {
    const at::Tensor& A = *call.A;
    check_floating(function, "A", A);
    if (call.factored()) {
      TORCH_CHECK(A.dim() == 3 && A.sym_size(0) == 3 && A.sym_size(1) == S.sym_size(0) && A.sym_size(2) >= 1,
                  function,
                  ": with algebra = 'factored' A holds U, V and W and must have the shape (3, n, R) with n = "
                  "S.size(0) = ",
                  S.sym_size(0), ", got ", A.sym_sizes());
      TORCH_CHECK(call.factors.empty(), function,
                  ": with algebra = 'factored' the factors are A itself; U, V and W are not given beside it");
    } else {
      TORCH_CHECK(A.dim() == 3 && A.sym_size(0) == S.sym_size(0) && A.sym_size(1) == A.sym_size(0) &&
                      A.sym_size(2) == A.sym_size(0),
                  function, ": A must have the shape (n, n, n) with n = S.size(0) = ", S.sym_size(0),
                  ", got ", A.sym_sizes());
    }
    TORCH_CHECK(A.device() == S.device(), function, ": A is on ", A.device(), ", S on ", S.device(),
                "; move one");
    for (const at::Tensor& factor : call.factors)
      TORCH_CHECK(factor.dim() == 2 && factor.sym_size(0) == A.sym_size(0) &&
                      factor.sym_size(1) == call.factors[0].sym_size(1),
                  function, ": each factor must have the shape (n, R), one R for all, got ",
                  factor.sym_sizes());
  } else {
    TORCH_CHECK(call.factors.empty(), function, ": factors go with a learned A; '", call.algebra,
                "' has its own");
    const int64_t n = call.fixed()->n();
    TORCH_CHECK(S.sym_size(0) == n, function, ": S must have ", n, " blocks for the algebra '", call.algebra,
                "', got ", S.sym_size(0));
  }
  TORCH_CHECK(x.sym_size(-1) == S.sym_size(0) * S.sym_size(2), function,
              ": the last axis of x must be in_features = ", S.sym_size(0) * S.sym_size(2),
              " (n * S.size(2)), got ", x.sym_size(-1));
  TORCH_CHECK(x.device() == S.device(), function, ": x is on ", x.device(), ", S on ", S.device(),
              "; move one");
  TORCH_CHECK(call.dtype || x.scalar_type() == S.scalar_type(), function, ": x is ", x.scalar_type(), ", S ",
              S.scalar_type(), "; convert one, or give the dtype to compute in");
  TORCH_CHECK(!call.dtype || at::isFloatingType(*call.dtype), function,
              ": dtype must be floating point, got ", *call.dtype);
}

void check_bias(const at::Tensor& bias, const at::Tensor& S) {
  TORCH_CHECK(bias.dim() == 1 && bias.sym_size(0) == S.sym_size(0) * S.sym_size(1),
              "linear: bias must have out_features = ", S.sym_size(0) * S.sym_size(1), " values, got ",
              bias.sym_sizes());
  TORCH_CHECK(bias.device() == S.device(), "linear: bias is on ", bias.device(), ", S on ", S.device(),
              "; move one");
}

void check_grad(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S, const Call& call) {
  bool fits = grad.dim() == x.dim() && grad.sym_size(-1) == S.sym_size(0) * S.sym_size(1);
  for (int64_t axis = 0; fits && axis + 1 < x.dim(); ++axis) fits = grad.sym_size(axis) == x.sym_size(axis);
  TORCH_CHECK(fits, "linear_backward: grad must have the shape of linear's result, got ", grad.sym_sizes(),
              " for x ", x.sym_sizes(), " and S ", S.sym_sizes());
  TORCH_CHECK(call.dtype || grad.scalar_type() == x.scalar_type(), "linear_backward: grad is ",
              grad.scalar_type(), ", x ", x.scalar_type(), "; convert one, or give the dtype to compute in");
}

int64_t rows_of(const at::Tensor& x) {
  int64_t rows = 1;
  for (int64_t axis = 0; axis + 1 < x.dim(); ++axis) rows *= x.size(axis);
  return rows;
}

std::vector<int64_t> sizes_with(const at::Tensor& like, int64_t last) {
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes.back() = last;
  return sizes;
}

namespace {

at::Tensor linear_any(const at::Tensor& x, const at::Tensor& S, const std::optional<at::Tensor>& bias,
                      std::string_view algebra, const std::optional<at::Tensor>& A,
                      const std::optional<at::Tensor>& U, const std::optional<at::Tensor>& V,
                      const std::optional<at::Tensor>& W, std::string_view way,
                      std::optional<at::ScalarType> dtype, bool constant) {
  return composed::linear(x, S, bias, make_call(algebra, A, U, V, W, way, dtype, constant));
}

/// Where no kernel keeps products, there are none.
std::tuple<at::Tensor, at::Tensor> linear_with_products_any(
    const at::Tensor& x, const at::Tensor& S, const std::optional<at::Tensor>& bias, std::string_view algebra,
    const std::optional<at::Tensor>& A, std::string_view way, std::optional<at::ScalarType> dtype) {
  return {composed::linear(x, S, bias, make_call(algebra, A, {}, {}, {}, way, dtype, false)),
          at::empty({0}, x.options().dtype(at::kFloat))};
}

Gradients linear_backward_any(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                              std::string_view algebra, const std::optional<at::Tensor>& A,
                              const std::optional<at::Tensor>& U, const std::optional<at::Tensor>& V,
                              const std::optional<at::Tensor>& W, std::string_view way,
                              std::optional<at::ScalarType> dtype, Mask output_mask,
                              const std::optional<at::Tensor>&) {
  return composed::linear_backward(grad, x, S, make_call(algebra, A, U, V, W, way, dtype, false),
                                   output_mask);
}

at::Tensor linear_meta(const at::Tensor& x, const at::Tensor& S, const std::optional<at::Tensor>& bias,
                       std::string_view algebra, const std::optional<at::Tensor>& A,
                       const std::optional<at::Tensor>& U, const std::optional<at::Tensor>& V,
                       const std::optional<at::Tensor>& W, std::string_view way,
                       std::optional<at::ScalarType> dtype, bool constant) {
  const Call call = make_call(algebra, A, U, V, W, way, dtype, constant);
  check_linear("linear", x, S, call);
  if (bias && bias->defined()) check_bias(*bias, S);
  std::vector<c10::SymInt> sizes = x.sym_sizes().vec();
  sizes.back() = S.sym_size(0) * S.sym_size(1);
  return at::empty_symint(sizes, x.options().dtype(call.compute_dtype(x)));
}

Gradients linear_backward_meta(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                               std::string_view algebra, const std::optional<at::Tensor>& A,
                               const std::optional<at::Tensor>& U, const std::optional<at::Tensor>& V,
                               const std::optional<at::Tensor>& W, std::string_view way,
                               std::optional<at::ScalarType> dtype, Mask output_mask,
                               const std::optional<at::Tensor>&) {
  const Call call = make_call(algebra, A, U, V, W, way, dtype, false);
  check_linear("linear_backward", x, S, call);
  check_grad(grad, x, S, call);
  const auto like = [](const at::Tensor& t, bool wanted) {
    return wanted ? at::empty_symint(t.sym_sizes(), t.options()) : at::Tensor();
  };
  return {like(x, output_mask[0]), like(S, output_mask[1]),
          call.learned() ? like(*call.A, output_mask[2]) : at::Tensor()};
}

at::Tensor linear_traced(const at::Tensor& x, const at::Tensor& S, const std::optional<at::Tensor>& bias,
                         std::string_view algebra, const std::optional<at::Tensor>& A,
                         const std::optional<at::Tensor>& U, const std::optional<at::Tensor>& V,
                         const std::optional<at::Tensor>& W, std::string_view way,
                         std::optional<at::ScalarType> dtype, bool constant) {
  return traced::linear(x, S, bias, make_call(algebra, A, U, V, W, way, dtype, constant));
}

Gradients linear_backward_traced(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                                 std::string_view algebra, const std::optional<at::Tensor>& A,
                                 const std::optional<at::Tensor>& U, const std::optional<at::Tensor>& V,
                                 const std::optional<at::Tensor>& W, std::string_view way,
                                 std::optional<at::ScalarType> dtype, Mask output_mask,
                                 const std::optional<at::Tensor>&) {
  return traced::linear_backward(grad, x, S, make_call(algebra, A, U, V, W, way, dtype, false), output_mask);
}

std::string planned_way_any(const at::Tensor& x, const at::Tensor& S, std::string_view algebra,
                            const std::optional<at::Tensor>& A, const std::optional<at::Tensor>& U,
                            const std::optional<at::Tensor>& V, const std::optional<at::Tensor>& W,
                            bool constant) {
  const Call call = make_call(algebra, A, U, V, W, "auto", std::nullopt, constant);
  check_linear("planned_way", x, S, call);
  return name(plan(make_problem(x, S, call), call.way));
}

// S goes uncast, with the type to compute in beside it: a cast copy would miss the prepared weights. A is
// never cast.
template <c10::DispatchKey key, c10::DeviceType device>
at::Tensor linear_autocast(const at::Tensor& x, const at::Tensor& S, const std::optional<at::Tensor>& bias,
                           std::string_view algebra, const std::optional<at::Tensor>& A,
                           const std::optional<at::Tensor>& U, const std::optional<at::Tensor>& V,
                           const std::optional<at::Tensor>& W, std::string_view way,
                           std::optional<at::ScalarType> dtype, bool constant) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(key);
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("quatrain::linear", "").typed<decltype(linear_any)>();
  // float64 stays as it is, as in ATen's own products.
  const bool cast = !dtype && x.scalar_type() != at::kDouble && S.scalar_type() != at::kDouble;
  if (cast) dtype = at::autocast::get_autocast_dtype(device);
  return op.call(cast ? at::autocast::cached_cast(*dtype, x, device) : x, S, bias, algebra, A, U, V, W, way,
                 dtype, constant);
}

std::optional<at::Tensor> optional(const at::Tensor& t) {
  return t.defined() ? std::optional(t) : std::nullopt;
}

std::optional<at::Tensor> factor(const Product& product, size_t which) {
  TORCH_CHECK(product.factors.empty() || product.factors.size() == 3,
              "linear: factors must be U, V and W, or none, got ", product.factors.size(), " tensors");
  return product.factors.empty() ? std::nullopt : optional(product.factors[which]);
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& S, const at::Tensor& bias, const Product& product,
                  Way way, std::optional<at::ScalarType> dtype, bool constant) {
  static const auto op =
      c10::Dispatcher::singleton().findSchemaOrThrow("quatrain::linear", "").typed<decltype(linear_any)>();
  return op.call(x, S, optional(bias), product.algebra, optional(product.A), factor(product, 0),
                 factor(product, 1), factor(product, 2), name(way), dtype, constant);
}

Gradients linear_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                          const Product& product, Way way, std::optional<at::ScalarType> dtype, Mask mask,
                          const at::Tensor& products) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::linear_backward", "")
                             .typed<decltype(linear_backward_any)>();
  return op.call(grad, x, S, product.algebra, optional(product.A), factor(product, 0), factor(product, 1),
                 factor(product, 2), name(way), dtype, mask, optional(products));
}

std::tuple<at::Tensor, at::Tensor> linear_with_products(const at::Tensor& x, const at::Tensor& S,
                                                        const at::Tensor& bias, const Product& product,
                                                        Way way, std::optional<at::ScalarType> dtype) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::linear_with_products", "")
                             .typed<decltype(linear_with_products_any)>();
  return op.call(x, S, optional(bias), product.algebra, optional(product.A), name(way), dtype);
}

Way planned_way(const at::Tensor& x, const at::Tensor& S, const Product& product, bool constant) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("quatrain::planned_way", "")
                             .typed<decltype(planned_way_any)>();
  return parse_way(op.call(x, S, product.algebra, optional(product.A), factor(product, 0), factor(product, 1),
                           factor(product, 2), constant));
}

namespace {

Call call_of(const Product& product) {
  Call call;
  call.algebra = product.algebra;
  if (product.A.defined()) call.A = product.A;
  call.factors = product.factors;
  return call;
}

}  // namespace

int64_t rank(const Product& product) {
  return call_of(product).rank();
}

at::Tensor materialise(const at::Tensor& S, const Product& product) {
  const Call call = call_of(product);
  TORCH_CHECK(S.dim() == 3, "materialise: S must have the shape (n, out_features / n, in_features / n), got ",
              S.sym_sizes());
  const int64_t n = call.learned() ? product.A.size(1) : call.fixed()->n();
  TORCH_CHECK(S.size(0) == n, "materialise: S must have ", n, " blocks, got ", S.size(0));
  return traced::materialise(S, call);
}

TORCH_LIBRARY(quatrain, m) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  m.def(
      "linear(Tensor x, Tensor S, Tensor? bias, str algebra, Tensor? A=None, Tensor? U=None, Tensor? V=None, "
      "Tensor? W=None, str "
      "way=\"auto\", "
      "ScalarType? dtype=None, bool constant=False) -> Tensor",
      tags);
  m.def(
      "linear_backward(Tensor grad, Tensor x, Tensor S, str algebra, Tensor? A=None, Tensor? U=None, Tensor? "
      "V=None, Tensor? W=None, "
      "str way=\"auto\", ScalarType? dtype=None, bool[3] output_mask=[True, True, True], Tensor? "
      "products=None) -> "
      "(Tensor, Tensor, "
      "Tensor)",
      tags);
  // For eager training alone: how many products there are is not known from sizes, so nothing traces it.
  m.def(
      "linear_with_products(Tensor x, Tensor S, Tensor? bias, str algebra, Tensor? A=None, str way=\"auto\", "
      "ScalarType? dtype=None) -> (Tensor, Tensor)");
  m.def(
      "planned_way(Tensor x, Tensor S, str algebra, Tensor? A=None, Tensor? U=None, Tensor? V=None, "
      "Tensor? W=None, bool constant=False) -> str",
      tags);
  m.def("drop_prepared(Tensor S) -> ()", &drop_prepared);
}

TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("linear", &linear_any);
  m.impl("linear_backward", &linear_backward_any);
  m.impl("linear_with_products", &linear_with_products_any);
  m.impl("planned_way", &planned_way_any);
}

TORCH_LIBRARY_IMPL(quatrain, Meta, m) {
  m.impl("linear", &linear_meta);
  m.impl("linear_backward", &linear_backward_meta);
}

TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatched, m) {
  m.impl("linear", &linear_traced);
  m.impl("linear_backward", &linear_backward_traced);
}

TORCH_LIBRARY_IMPL(quatrain, AutocastCPU, m) {
  m.impl("linear", &linear_autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>);
}

TORCH_LIBRARY_IMPL(quatrain, AutocastCUDA, m) {
  m.impl("linear", &linear_autocast<c10::DispatchKey::AutocastCUDA, c10::DeviceType::CUDA>);
}

}  // namespace quatrain::ops
