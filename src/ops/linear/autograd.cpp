// Derivatives of `linear` and `linear_backward`: each is a sum of the two operators again, so any order
// exists.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "ops/linear/schema.h"
#include "ops/map/bilinear_map.h"
#include "ops/transforms.h"

namespace quatrain::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A call in a wrapper, so that autograd does not see its factors as inputs: they are never differentiated.
/// A comes beside it.
struct CallConstants {
  Call call;
  Call with(const at::Tensor& A) const {
    Call whole = call;
    whole.A = A.defined() ? Optional(A) : std::nullopt;
    return whole;
  }
};

/// Function transforms and forward-mode derivatives take the traced form.
bool transformed(std::initializer_list<at::Tensor> inputs) {
  if (in_function_transform()) return true;
  for (const at::Tensor& t : inputs)
    if (has_tangent(t)) return true;
  return false;
}

void save(AutogradContext* ctx, const Call& call, variable_list tensors) {
  for (const at::Tensor& factor : call.factors) tensors.push_back(factor);
  ctx->save_for_backward(std::move(tensors));
  ctx->set_materialize_grads(false);
  ctx->saved_data["algebra"] = call.algebra;
  ctx->saved_data["way"] = static_cast<int64_t>(call.way);
  ctx->saved_data["dtype"] = call.dtype ? static_cast<int64_t>(*call.dtype) : -1;
}

/// What save() kept: `count` tensors, A among them, then the factors.
Call restore(AutogradContext* ctx, const variable_list& saved, size_t count, const at::Tensor& A) {
  Call call;
  if (A.defined()) call.A = A;
  call.algebra = ctx->saved_data["algebra"].toStringRef();
  call.way = static_cast<Way>(ctx->saved_data["way"].toInt());
  if (const int64_t dtype = ctx->saved_data["dtype"].toInt(); dtype >= 0)
    call.dtype = static_cast<at::ScalarType>(dtype);
  call.factors.assign(saved.begin() + static_cast<std::ptrdiff_t>(count), saved.end());
  return call;
}

/// True where the R products of this pass are worth keeping for the gradient of what A holds. They are
/// kept by eager training alone: their number is not known to a trace.
bool keeps_products(const at::Tensor& x, const at::Tensor& S, const at::Tensor& A, const Call& call) {
  if (!wants_grad(A) || !call.factors.empty() || !x.device().is_cpu()) return false;
  for (const at::Tensor& t : {x, S, A})
    if (has_tracing_key(t)) return false;
  check_linear("linear", x, S, call);  // sizes are divided below
  return products_kept(make_problem(S, call, rows_of(x), call.compute_dtype(x)));
}

at::Tensor sum(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() ? (b.defined() ? a + b : a) : b;
}

/// Gradient for an input of another type than the one computed in.
at::Tensor cast_to(const at::Tensor& t, const at::Tensor& like) {
  return t.defined() && t.scalar_type() != like.scalar_type() ? t.to(like.scalar_type()) : t;
}

}  // namespace

// What profiles name; their functions are in this file alone.
namespace autograd {

// Inputs of apply(): x, S, bias, A; the edges of undefined ones do not exist.
struct Linear : torch::autograd::Function<Linear> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& S,
                            const Optional& bias, const Optional& A, const CallConstants& constants) {
    const at::Tensor A_or_none = A.value_or(at::Tensor());
    const Call call = constants.with(A_or_none);
    at::Tensor y, products;
    {
      const at::AutoDispatchBelowADInplaceOrView below;
      if (keeps_products(x, S, A_or_none, call))
        std::tie(y, products) = dispatch_linear_with_products(x, S, bias, call);
      else
        y = dispatch_linear(x, S, bias, call);
    }
    save(ctx, call, {x, S, A_or_none, bias.value_or(at::Tensor()), products});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(5);
    if (!grads[0].defined()) return result;
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &S = saved[1], &A = saved[2], &bias = saved[3];
    const Call call = restore(ctx, saved, 5, A);
    const bool has_bias = bias.defined();
    const bool want_bias = has_bias && ctx->needs_input_grad(2);
    const Mask mask{ctx->needs_input_grad(0), ctx->needs_input_grad(1),
                    A.defined() && ctx->needs_input_grad(has_bias ? 3 : 2)};
    if (mask[0] || mask[1] || mask[2])
      std::tie(result[0], result[1], result[3]) =
          dispatch_linear_backward(grads[0], x, S, call, mask, saved[4]);
    if (want_bias) {
      result[2] = by_rows(grads[0]).sum(0, false, bias.scalar_type());
    }
    return result;
  }
};

// With v, P, B the gradients that reach dx, dS, dA:
//   for grad: linear(v, S, A) + linear(x, P, A) + linear(x, S, B)
//   for x, S, A: linear_backward at (v, S, A), (x, P, A), (x, S, B), without the part that v, P or B stands
//   for.
struct LinearBackward : torch::autograd::Function<LinearBackward> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& grad, const at::Tensor& x,
                               const at::Tensor& S, const Optional& A, const CallConstants& constants,
                               Mask mask) {
    const Call call = constants.with(A.value_or(at::Tensor()));
    save(ctx, call, {grad, x, S, A.value_or(at::Tensor())});
    ctx->saved_data["mask"] = static_cast<int64_t>(mask[0] | mask[1] << 1 | mask[2] << 2);
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto [dx, dS, dA] = dispatch_linear_backward(grad, x, S, call, mask);
    variable_list outputs;  // only those that are defined
    for (const at::Tensor& t : {dx, dS, dA})
      if (t.defined()) outputs.push_back(t);
    return outputs;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &g = saved[0], &x = saved[1], &S = saved[2], &A = saved[3];
    const Call call = restore(ctx, saved, 4, A);
    const int64_t mask = ctx->saved_data["mask"].toInt();
    std::array<at::Tensor, 3> upstream;
    for (size_t part = 0, next = 0; part < 3; ++part)
      if (mask >> part & 1) upstream[part] = grads[next++];
    const auto& [v, P, B] = upstream;

    const bool want_g = ctx->needs_input_grad(0), want_x = ctx->needs_input_grad(1),
               want_S = ctx->needs_input_grad(2), want_A = A.defined() && ctx->needs_input_grad(3);
    at::Tensor dg, dx, dS, dA;
    const auto add = [&](const at::Tensor& at_x, const at::Tensor& at_S, const Call& at, Mask wanted) {
      if (want_g) dg = sum(dg, dispatch_linear(at_x, at_S, std::nullopt, at));
      if (!wanted[0] && !wanted[1] && !wanted[2]) return;
      const auto [more_x, more_S, more_A] = dispatch_linear_backward(g, at_x, at_S, at, wanted);
      dx = sum(dx, more_x), dS = sum(dS, more_S), dA = sum(dA, more_A);
    };
    if (v.defined()) add(v, S, call, {false, want_S, want_A});
    if (P.defined()) add(x, P, call, {want_x, false, want_A});
    if (B.defined()) {
      // A direction has no factors, and none are sought for what never comes again: the ways without them
      // serve. The call names one of them, because a guard or the environment may name the factored way.
      Call perturbed = call;
      perturbed.A = B;
      if (call.way != Way::mixed) perturbed.way = Way::materialised;
      perturbed.factors.clear();
      add(x, S, perturbed, {want_x, want_S, false});
    }
    return {cast_to(dg, g), cast_to(dx, x), cast_to(dS, S), dA, {}, {}};
  }
};

}  // namespace autograd

namespace {

at::Tensor linear_autograd(const at::Tensor& x, const at::Tensor& S, const Optional& bias,
                           const Call& given_call) {
  const at::Tensor bias_or_none = bias.value_or(at::Tensor()),
                   A_or_none = given_call.A.value_or(at::Tensor());
  if (transformed({x, S, bias_or_none, A_or_none})) return traced::linear(x, S, bias, given_call);
  const bool trains = at::GradMode::is_enabled() && (wants_grad(S) || wants_grad(A_or_none));
  if (!trains && !(at::GradMode::is_enabled() && (wants_grad(x) || wants_grad(bias_or_none)))) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return dispatch_linear(x, S, bias, given_call);
  }
  Call call = given_call;
  // A weight that is being trained is about to change: nothing is worth preparing.
  call.constant = call.constant && !trains;
  return autograd::Linear::apply(x, S, bias, call.A, CallConstants{call});
}

Gradients linear_backward_autograd(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                                   const Call& call, Mask mask, const Optional& products) {
  const at::Tensor A_or_none = call.A.value_or(at::Tensor());
  const bool differentiable = at::GradMode::is_enabled() &&
                              (wants_grad(grad) || wants_grad(x) || wants_grad(S) || wants_grad(A_or_none));
  // Where A holds the factors, the form is not linear in it.
  if (transformed({grad, x, S, A_or_none}) || (differentiable && call.factored()))
    return traced::linear_backward(grad, x, S, call, mask);
  mask[2] = mask[2] && A_or_none.defined();
  if (!differentiable) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return dispatch_linear_backward(grad, x, S, call, mask, products);
  }
  const variable_list parts = autograd::LinearBackward::apply(grad, x, S, call.A, CallConstants{call}, mask);
  std::array<at::Tensor, 3> result;
  for (size_t part = 0, next = 0; part < 3; ++part)
    if (mask[part]) result[part] = parts[next++];
  return {result[0], result[1], result[2]};
}

// It has no derivative: what it gives are constants to autograd. Training calls it below autograd, above.
std::tuple<at::Tensor, at::Tensor> constant_with_products(const at::Tensor& x, const at::Tensor& S,
                                                          const Optional& bias, const Call& call) {
  const at::AutoDispatchBelowADInplaceOrView below;
  return dispatch_linear_with_products(x, S, bias, call);
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, Autograd, m) {
  m.impl("linear_with_products", &linear_with_products_schema<&constant_with_products>);
  m.impl("linear", &linear_schema<&linear_autograd>);
  m.impl("linear_backward", &linear_backward_schema<&linear_backward_autograd>);
}

}  // namespace quatrain::ops
