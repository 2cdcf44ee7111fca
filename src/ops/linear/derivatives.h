#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/linear/linear.h"
#include "ops/transforms.h"

/// Derivatives of an operator that is dQ/dg of a form Q(g, x, S, A), linear in each of the four, and of its
/// backward operator, the other three partial derivatives: each is a sum of the two operators again, so any
/// order exists.
///
/// An operator brings a `Form`, all static:
///
///   Call                        what it is called with beside its tensors
///   map(call)                   the ops::Call in it
///   apply(x, S, bias, call)     the operator through the dispatcher
///   apply_and_keep(...)         the same in training; beside the result what its backward pass may use
///   again,
///                               or an undefined tensor
///   apply_backward(grad, x, S, call, mask, kept)
///   traced(...), traced_backward(...)  in differentiable calls of ATen
///   bias_gradient(grad, bias)
///   direction(way)              a way without factors that serves where A is a direction
///   save(data, call), restore(data, call)  what Call has beside the map
///
/// and two nodes, which profiles name: `struct Name : Forward<Name, Form> {}`, and one of Backward.
namespace quatrain::ops::derivatives {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// A call in a wrapper, so that autograd does not see its factors as inputs: they are never differentiated.
/// A comes beside it.
template <class Form>
struct Constants {
  typename Form::Call call;
  typename Form::Call with(const at::Tensor& A) const {
    typename Form::Call whole = call;
    Form::map(whole).A = A.defined() ? Optional(A) : std::nullopt;
    return whole;
  }
};

template <class Form>
void save(AutogradContext* ctx, const typename Form::Call& call, variable_list tensors) {
  const Call& map = Form::map(call);
  for (const at::Tensor& factor : map.factors) tensors.push_back(factor);
  ctx->save_for_backward(std::move(tensors));
  ctx->set_materialize_grads(false);
  auto& data = ctx->saved_data;
  data["algebra"] = map.algebra;
  data["way"] = static_cast<int64_t>(map.way);
  data["dtype"] = map.dtype ? static_cast<int64_t>(*map.dtype) : -1;
  Form::save(data, call);
}

/// What save() kept: `count` tensors, A among them, then the factors.
template <class Form>
typename Form::Call restore(AutogradContext* ctx, const variable_list& saved, size_t count,
                            const at::Tensor& A) {
  auto& data = ctx->saved_data;
  typename Form::Call call;
  Call& map = Form::map(call);
  if (A.defined()) map.A = A;
  map.algebra = data["algebra"].toStringRef();
  map.way = static_cast<Way>(data["way"].toInt());
  if (const int64_t dtype = data["dtype"].toInt(); dtype >= 0) map.dtype = static_cast<at::ScalarType>(dtype);
  map.factors.assign(saved.begin() + static_cast<std::ptrdiff_t>(count), saved.end());
  Form::restore(data, call);
  return call;
}

/// The three parts of which those in the mask are listed; the others are undefined.
inline std::array<at::Tensor, 3> spread(const variable_list& parts, Mask mask) {
  std::array<at::Tensor, 3> result;
  for (size_t part = 0, next = 0; part < 3; ++part)
    if (mask[part]) result[part] = parts[next++];
  return result;
}

inline at::Tensor sum(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() ? (b.defined() ? a + b : a) : b;
}

/// Gradient for an input of another type than the one computed in.
inline at::Tensor cast_to(const at::Tensor& t, const at::Tensor& like) {
  return t.defined() && t.scalar_type() != like.scalar_type() ? t.to(like.scalar_type()) : t;
}

// Inputs of apply(): x, S, bias, A; the edges of undefined ones do not exist.
template <class Node, class Form_>
struct Forward : torch::autograd::Function<Node> {
  using Form = Form_;

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& S,
                            const Optional& bias, const Optional& A, const Constants<Form>& constants) {
    const at::Tensor A_or_none = A.value_or(at::Tensor());
    const typename Form::Call call = constants.with(A_or_none);
    const auto [y, kept] = [&] {
      const at::AutoDispatchBelowADInplaceOrView below;
      return Form::apply_and_keep(x, S, bias, call);
    }();
    save<Form>(ctx, call, {x, S, A_or_none, bias.value_or(at::Tensor()), kept});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(5);
    if (!grads[0].defined()) return result;
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &S = saved[1], &A = saved[2], &bias = saved[3], &kept = saved[4];
    const typename Form::Call call = restore<Form>(ctx, saved, 5, A);
    const bool has_bias = bias.defined();
    const Mask mask{ctx->needs_input_grad(0), ctx->needs_input_grad(1),
                    A.defined() && ctx->needs_input_grad(has_bias ? 3 : 2)};
    if (mask[0] || mask[1] || mask[2])
      std::tie(result[0], result[1], result[3]) = Form::apply_backward(grads[0], x, S, call, mask, kept);
    if (has_bias && ctx->needs_input_grad(2)) result[2] = Form::bias_gradient(grads[0], bias);
    return result;
  }
};

// With v, P, B the gradients that reach dx, dS, dA, and `apply` the operator:
//   for grad: apply(v, S, A) + apply(x, P, A) + apply(x, S, B)
//   for x, S, A: apply_backward at (v, S, A), (x, P, A), (x, S, B), without the part that v, P or B stands
//   for.
template <class Node, class Form_>
struct Backward : torch::autograd::Function<Node> {
  using Form = Form_;

  static variable_list forward(AutogradContext* ctx, const at::Tensor& grad, const at::Tensor& x,
                               const at::Tensor& S, const Optional& A, const Constants<Form>& constants,
                               Mask mask) {
    const typename Form::Call call = constants.with(A.value_or(at::Tensor()));
    save<Form>(ctx, call, {grad, x, S, A.value_or(at::Tensor())});
    ctx->saved_data["mask"] = static_cast<int64_t>(mask[0] | mask[1] << 1 | mask[2] << 2);
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto [dx, dS, dA] = Form::apply_backward(grad, x, S, call, mask, std::nullopt);
    const std::array parts{dx, dS, dA};
    variable_list outputs;  // only those that are asked for
    for (size_t part = 0; part < 3; ++part)
      if (mask[part]) outputs.push_back(parts[part]);
    return outputs;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &g = saved[0], &x = saved[1], &S = saved[2], &A = saved[3];
    const typename Form::Call call = restore<Form>(ctx, saved, 4, A);
    const int64_t mask = ctx->saved_data["mask"].toInt();
    const auto [v, P, B] = spread(grads, {(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0});

    const bool want_g = ctx->needs_input_grad(0), want_x = ctx->needs_input_grad(1),
               want_S = ctx->needs_input_grad(2), want_A = A.defined() && ctx->needs_input_grad(3);
    at::Tensor dg, dx, dS, dA;
    const auto add = [&](const at::Tensor& at_x, const at::Tensor& at_S, const typename Form::Call& at,
                         Mask wanted) {
      if (want_g) dg = sum(dg, Form::apply(at_x, at_S, std::nullopt, at));
      if (!wanted[0] && !wanted[1] && !wanted[2]) return;
      const auto [more_x, more_S, more_A] = Form::apply_backward(g, at_x, at_S, at, wanted, std::nullopt);
      dx = sum(dx, more_x), dS = sum(dS, more_S), dA = sum(dA, more_A);
    };
    if (v.defined()) add(v, S, call, {false, want_S, want_A});
    if (P.defined()) add(x, P, call, {want_x, false, want_A});
    if (B.defined()) {
      // A direction has no factors, and none are sought for what never comes again: the ways without them
      // serve. The call names one of them, because a guard or the environment may name the factored way.
      typename Form::Call perturbed = call;
      Call& map = Form::map(perturbed);
      map.A = B;
      map.way = Form::direction(map.way);
      map.factors.clear();
      add(x, S, perturbed, {want_x, want_S, false});
    }
    return {cast_to(dg, g), cast_to(dx, x), cast_to(dS, S), dA, {}, {}};
  }
};

/// What an operator registers for autograd; `Node` is its forward node.
template <class Node, class Form = typename Node::Form>
at::Tensor record(const at::Tensor& x, const at::Tensor& S, const Optional& bias,
                  const typename Form::Call& given_call) {
  const at::Tensor bias_or_none = bias.value_or(at::Tensor()),
                   A_or_none = Form::map(given_call).A.value_or(at::Tensor());
  if (transformed({x, S, bias_or_none, A_or_none})) return Form::traced(x, S, bias, given_call);
  const bool trains = at::GradMode::is_enabled() && (wants_grad(S) || wants_grad(A_or_none));
  if (!trains && !(at::GradMode::is_enabled() && (wants_grad(x) || wants_grad(bias_or_none)))) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return Form::apply(x, S, bias, given_call);
  }
  typename Form::Call call = given_call;
  Call& map = Form::map(call);
  // A weight that is being trained is about to change: nothing is worth preparing.
  map.constant = map.constant && !trains;
  return Node::apply(x, S, bias, map.A, Constants<Form>{call});
}

/// The same of the backward operator; `Node` is its node.
template <class Node, class Form = typename Node::Form>
Gradients record_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                          const typename Form::Call& call, Mask mask, const Optional& kept) {
  const Call& map = Form::map(call);
  const at::Tensor A_or_none = map.A.value_or(at::Tensor());
  const bool differentiable = at::GradMode::is_enabled() &&
                              (wants_grad(grad) || wants_grad(x) || wants_grad(S) || wants_grad(A_or_none));
  // Where A holds the factors, the form is not linear in it.
  if (transformed({grad, x, S, A_or_none}) || (differentiable && map.factored()))
    return Form::traced_backward(grad, x, S, call, mask);
  mask[2] = mask[2] && A_or_none.defined();
  if (!differentiable) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return Form::apply_backward(grad, x, S, call, mask, kept);
  }
  const auto [dx, dS, dA] = spread(Node::apply(grad, x, S, map.A, Constants<Form>{call}, mask), mask);
  return {dx, dS, dA};
}

}  // namespace quatrain::ops::derivatives
