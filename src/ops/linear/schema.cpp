// The schemas of `linear` and what belongs to it, and the kernels that serve every device.

#include "ops/linear/schema.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "ops/map/bilinear_map.h"
#include "ops/map/choice.h"

namespace quatrain::ops {

namespace {

Gradients composed_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                            const Call& call, Mask mask, const Optional&) {
  return composed::linear_backward(grad, x, S, call, mask);
}

/// The composed form keeps no products.
std::tuple<at::Tensor, at::Tensor> composed_with_products(const at::Tensor& x, const at::Tensor& S,
                                                          const Optional& bias, const Call& call) {
  return {composed::linear(x, S, bias, call), at::empty({0}, x.options().dtype(at::kFloat))};
}

Gradients traced_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S, const Call& call,
                          Mask mask, const Optional&) {
  return traced::linear_backward(grad, x, S, call, mask);
}

Way composed_way(const at::Tensor& x, const at::Tensor& S, const Call& call) {
  check_linear("planned_way", x, S, call);
  return plan(make_problem(S, call, rows_of(x), call.compute_dtype(x)), call.way);
}

template <class Signature>
auto operator_of(const char* schema) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(schema, "").typed<Signature>();
}

}  // namespace

at::Tensor dispatch_linear(const at::Tensor& x, const at::Tensor& S, const Optional& bias, const Call& call) {
  static const auto op = operator_of<decltype(linear_schema<&composed::linear>)>("quatrain::linear");
  return op.call(x, S, bias, call.algebra, call.A, call.factors, name(call.way), call.dtype, call.constant);
}

Gradients dispatch_linear_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                                   const Call& call, Mask mask, const Optional& products) {
  static const auto op =
      operator_of<decltype(linear_backward_schema<&composed_backward>)>("quatrain::linear_backward");
  return op.call(grad, x, S, call.algebra, call.A, call.factors, name(call.way), call.dtype, mask, products);
}

std::tuple<at::Tensor, at::Tensor> dispatch_linear_with_products(const at::Tensor& x, const at::Tensor& S,
                                                                 const Optional& bias, const Call& call) {
  static const auto op = operator_of<decltype(linear_with_products_schema<&composed_with_products>)>(
      "quatrain::linear_with_products");
  return op.call(x, S, bias, call.algebra, call.A, name(call.way), call.dtype);
}

Way dispatch_planned_way(const at::Tensor& x, const at::Tensor& S, const Call& call) {
  static const auto op = operator_of<decltype(planned_way_schema<&composed_way>)>("quatrain::planned_way");
  return parse_way(op.call(x, S, call.algebra, call.A, call.factors, call.constant));
}

TORCH_LIBRARY(quatrain, m) {
  const std::vector<at::Tag> tags{at::Tag::pt2_compliant_tag};
  m.def(
      "linear(Tensor x, Tensor S, Tensor? bias, str algebra, Tensor? A, Tensor[]? factors, "
      "str way=\"auto\", ScalarType? dtype=None, bool constant=False) -> Tensor",
      tags);
  m.def(
      "linear_backward(Tensor grad, Tensor x, Tensor S, str algebra, Tensor? A, Tensor[]? factors, "
      "str way=\"auto\", ScalarType? dtype=None, bool[3] output_mask=[True, True, True], "
      "Tensor? products=None) -> (Tensor, Tensor, Tensor)",
      tags);
  // For eager training alone: how many products there are is not known from sizes, so nothing traces it.
  m.def(
      "linear_with_products(Tensor x, Tensor S, Tensor? bias, str algebra, Tensor? A=None, str way=\"auto\", "
      "ScalarType? dtype=None) -> (Tensor, Tensor)");
  m.def(
      "planned_way(Tensor x, Tensor S, str algebra, Tensor? A, Tensor[] factors, "
      "bool constant=False) -> str",
      tags);
  m.def("drop_prepared(Tensor S) -> ()", &drop_prepared);
}

TORCH_LIBRARY_IMPL(quatrain, CompositeExplicitAutograd, m) {
  m.impl("linear", &linear_schema<&composed::linear>);
  m.impl("linear_backward", &linear_backward_schema<&composed_backward>);
  m.impl("linear_with_products", &linear_with_products_schema<&composed_with_products>);
  m.impl("planned_way", &planned_way_schema<&composed_way>);
}

TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatched, m) {
  m.impl("linear", &linear_schema<&traced::linear>);
  m.impl("linear_backward", &linear_backward_schema<&traced_backward>);
}

// torch.autograd.grad(is_grads_batched=True) dispatches here; torch's own fallback, a loop, cannot take lists
// of tensors.
TORCH_LIBRARY_IMPL(quatrain, Batched, m) {
  m.impl("linear", &linear_schema<&traced::linear>);
  m.impl("linear_backward", &linear_backward_schema<&traced_backward>);
}

}  // namespace quatrain::ops
