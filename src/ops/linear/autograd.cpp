// What autograd records of `linear` and `linear_backward`.

#include <torch/library.h>

#include "ops/linear/derivatives.h"
#include "ops/linear/schema.h"
#include "ops/map/bilinear_map.h"
#include "ops/map/choice.h"

namespace quatrain::ops {

namespace {

/// True where the R products of this pass are worth keeping for the gradient of what A holds. They are
/// kept by eager training alone: their number is not known to a trace.
bool keeps_products(const at::Tensor& x, const at::Tensor& S, const Call& call) {
  if (!call.learned() || !wants_grad(*call.A) || !call.factors.empty() || !x.device().is_cpu()) return false;
  for (const at::Tensor& t : {x, S, *call.A})
    if (has_tracing_key(t)) return false;
  check_linear("linear", x, S, call);  // sizes are divided below
  return products_kept(make_problem(S, call, rows_of(x), call.compute_dtype(x)));
}

}  // namespace

// What profiles name; their functions are in this file alone.
namespace autograd {

struct LinearForm {
  using Call = ops::Call;
  static Call& map(Call& call) { return call; }
  static const Call& map(const Call& call) { return call; }

  static at::Tensor apply(const at::Tensor& x, const at::Tensor& S, const Optional& bias, const Call& call) {
    return dispatch_linear(x, S, bias, call);
  }
  static std::tuple<at::Tensor, at::Tensor> apply_and_keep(const at::Tensor& x, const at::Tensor& S,
                                                           const Optional& bias, const Call& call) {
    if (keeps_products(x, S, call)) return dispatch_linear_with_products(x, S, bias, call);
    return {dispatch_linear(x, S, bias, call), at::Tensor()};
  }
  static Gradients apply_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                                  const Call& call, Mask mask, const Optional& products) {
    return dispatch_linear_backward(grad, x, S, call, mask, products);
  }
  static at::Tensor traced(const at::Tensor& x, const at::Tensor& S, const Optional& bias, const Call& call) {
    return traced::linear(x, S, bias, call);
  }
  static Gradients traced_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                                   const Call& call, Mask mask) {
    return traced::linear_backward(grad, x, S, call, mask);
  }
  static at::Tensor bias_gradient(const at::Tensor& grad, const at::Tensor& bias) {
    return by_rows(grad).sum(0, false, bias.scalar_type());
  }
  static Way direction(Way way) { return way == Way::mixed ? way : Way::materialised; }

  template <class Data>
  static void save(Data&, const Call&) {}
  template <class Data>
  static void restore(Data&, Call&) {}
};

struct Linear : derivatives::Forward<Linear, LinearForm> {};
struct LinearBackward : derivatives::Backward<LinearBackward, LinearForm> {};

}  // namespace autograd

namespace {

// It has no derivative: what it gives are constants to autograd. Training calls it below autograd, above.
std::tuple<at::Tensor, at::Tensor> constant_with_products(const at::Tensor& x, const at::Tensor& S,
                                                          const Optional& bias, const Call& call) {
  const at::AutoDispatchBelowADInplaceOrView below;
  return dispatch_linear_with_products(x, S, bias, call);
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, Autograd, m) {
  m.impl("linear_with_products", &linear_with_products_schema<&constant_with_products>);
  m.impl("linear", &linear_schema<&derivatives::record<autograd::Linear>>);
  m.impl("linear_backward", &linear_backward_schema<&derivatives::record_backward<autograd::LinearBackward>>);
}

}  // namespace quatrain::ops
