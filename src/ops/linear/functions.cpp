// The C++ functions over the operator `linear`, and the checks of its arguments.

#include "ops/linear/schema.h"
#include "quatrain/ops.h"

namespace quatrain::ops {

namespace {

/// What is handed to the dispatcher: whoever unpacks it settles the way.
Call call_of(const Product& product, Way way, Dtype dtype, bool constant) {
  Call call;
  call.algebra = product.algebra;
  if (product.A.defined()) call.A = product.A;
  call.factors = product.factors;
  call.way = way, call.dtype = dtype, call.constant = constant;
  return call;
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& S, const at::Tensor& bias, const Product& product,
                  Way way, Dtype dtype, bool constant) {
  return dispatch_linear(x, S, bias, call_of(product, way, dtype, constant));
}

Gradients linear_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                          const Product& product, Way way, Dtype dtype, Mask mask,
                          const at::Tensor& products) {
  return dispatch_linear_backward(grad, x, S, call_of(product, way, dtype, false), mask, products);
}

std::tuple<at::Tensor, at::Tensor> linear_with_products(const at::Tensor& x, const at::Tensor& S,
                                                        const at::Tensor& bias, const Product& product,
                                                        Way way, Dtype dtype) {
  return dispatch_linear_with_products(x, S, bias, call_of(product, way, dtype, false));
}

Way planned_way(const at::Tensor& x, const at::Tensor& S, const Product& product, bool constant) {
  return dispatch_planned_way(x, S, call_of(product, Way::automatic, std::nullopt, constant));
}

int64_t rank(const Product& product) {
  return make_call(product).rank();
}

at::Tensor materialise(const at::Tensor& S, const Product& product) {
  const Call call = make_call(product);
  check_weight("materialise", S, call);
  return traced::materialise(S, call);
}

void check_linear(const char* function, const at::Tensor& x, const at::Tensor& S, const Call& call) {
  check_weight(function, S, call);
  check_values(function, "x", x);
  TORCH_CHECK(x.dim() >= 1, function, ": x must have at least one axis, its last one of in_features values");
  TORCH_CHECK(x.sym_size(-1) == S.sym_size(0) * S.sym_size(2), function,
              ": the last axis of x must be in_features = ", S.sym_size(0) * S.sym_size(2),
              " (n * S.size(2)), got ", x.sym_size(-1));
  TORCH_CHECK(x.device() == S.device(), function, ": x is on ", x.device(), ", S on ", S.device(),
              "; move one");
  TORCH_CHECK(call.dtype || x.scalar_type() == S.scalar_type(), function, ": x is ", x.scalar_type(), ", S ",
              S.scalar_type(), "; convert one, or give the dtype to compute in");
}

void check_bias(const Optional& bias, const at::Tensor& S) {
  if (!given(bias)) return;
  check_values("linear", "bias", *bias);
  TORCH_CHECK(bias->dim() == 1 && bias->sym_size(0) == S.sym_size(0) * S.sym_size(1),
              "linear: bias must have out_features = ", S.sym_size(0) * S.sym_size(1), " values, got ",
              bias->sym_sizes());
  TORCH_CHECK(bias->device() == S.device(), "linear: bias is on ", bias->device(), ", S on ", S.device(),
              "; move one");
}

void check_grad(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S, const Call& call) {
  check_values("linear_backward", "grad", grad);
  bool fits = grad.dim() == x.dim() && grad.sym_size(-1) == S.sym_size(0) * S.sym_size(1);
  for (int64_t axis = 0; fits && axis + 1 < x.dim(); ++axis) fits = grad.sym_size(axis) == x.sym_size(axis);
  TORCH_CHECK(fits, "linear_backward: grad must have the shape of linear's result, got ", grad.sym_sizes(),
              " for x ", x.sym_sizes(), " and S ", S.sym_sizes());
  TORCH_CHECK(grad.device() == x.device(), "linear_backward: grad is on ", grad.device(), ", x on ",
              x.device(), "; move one");
  TORCH_CHECK(call.dtype || grad.scalar_type() == x.scalar_type(), "linear_backward: grad is ",
              grad.scalar_type(), ", x ", x.scalar_type(), "; convert one, or give the dtype to compute in");
}

int64_t rows_of(const at::Tensor& x) {
  int64_t rows = 1;
  for (int64_t axis = 0; axis + 1 < x.dim(); ++axis) rows *= x.size(axis);
  return rows;
}

at::Tensor by_rows(const at::Tensor& t) {
  // The number of rows is computed, because -1 is ambiguous where there are no columns.
  c10::SymInt rows = 1;
  for (int64_t axis = 0; axis + 1 < t.dim(); ++axis) rows = rows * t.sym_size(axis);
  return t.reshape_symint({rows, t.sym_size(-1)});
}

std::vector<int64_t> sizes_with(const at::Tensor& like, int64_t last) {
  std::vector<int64_t> sizes = like.sizes().vec();
  sizes.back() = last;
  return sizes;
}

}  // namespace quatrain::ops
