// Derivatives of `convolution` and `convolution_backward`: each is a sum of the two operators again, so any
// order exists.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/sum.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "ops/convolution/schema.h"
#include "ops/transforms.h"

namespace quatrain::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// In a wrapper, so that autograd does not see its factors as inputs: they are never differentiated. A comes
/// beside it.
struct ConvolutionConstants {
  ConvolutionCall call;
  ConvolutionCall with(const at::Tensor& A) const {
    ConvolutionCall whole = call;
    whole.map.A = A.defined() ? Optional(A) : std::nullopt;
    return whole;
  }
};

bool transformed_convolution(std::initializer_list<at::Tensor> inputs) {
  if (in_function_transform()) return true;
  for (const at::Tensor& t : inputs)
    if (has_tangent(t)) return true;
  return false;
}

void save_convolution(AutogradContext* ctx, const ConvolutionCall& call, variable_list tensors) {
  for (const at::Tensor& factor : call.map.factors) tensors.push_back(factor);
  ctx->save_for_backward(std::move(tensors));
  ctx->set_materialize_grads(false);
  auto& data = ctx->saved_data;
  data["algebra"] = call.map.algebra;
  data["way"] = static_cast<int64_t>(call.map.way);
  data["winograd"] = static_cast<int64_t>(call.winograd);
  data["dtype"] = call.map.dtype ? static_cast<int64_t>(*call.map.dtype) : -1;
  data["stride"] = call.stride, data["padding"] = call.padding, data["dilation"] = call.dilation;
  data["output_padding"] = call.output_padding;
  data["transposed"] = call.transposed, data["groups"] = call.groups;
}

/// What save_convolution() kept: `count` tensors, A among them, then the factors.
ConvolutionCall restore_convolution(AutogradContext* ctx, const variable_list& saved, size_t count,
                                    const at::Tensor& A) {
  auto& data = ctx->saved_data;
  ConvolutionCall call;
  if (A.defined()) call.map.A = A;
  call.map.algebra = data["algebra"].toStringRef();
  call.map.way = static_cast<Way>(data["way"].toInt());
  call.winograd = static_cast<Winograd>(data["winograd"].toInt());
  if (const int64_t dtype = data["dtype"].toInt(); dtype >= 0)
    call.map.dtype = static_cast<at::ScalarType>(dtype);
  call.map.factors.assign(saved.begin() + static_cast<std::ptrdiff_t>(count), saved.end());
  const auto list = [&](const char* name) { return data[name].toIntVector(); };
  call.stride = list("stride"), call.padding = list("padding"), call.dilation = list("dilation");
  call.output_padding = list("output_padding");
  call.transposed = data["transposed"].toBool(), call.groups = data["groups"].toInt();
  return call;
}

at::Tensor sum_of(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() ? (b.defined() ? a + b : a) : b;
}

/// Gradient for an input of another type than the one computed in.
at::Tensor typed(const at::Tensor& t, const at::Tensor& like) {
  return t.defined() && t.scalar_type() != like.scalar_type() ? t.to(like.scalar_type()) : t;
}

}  // namespace

// What profiles name; their functions are in this file alone.
namespace autograd {

// Inputs of apply(): x, F, bias, A; the edges of undefined ones do not exist.
struct Convolution : torch::autograd::Function<Convolution> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& F,
                            const Optional& bias, const Optional& A, const ConvolutionConstants& constants) {
    const at::Tensor A_or_none = A.value_or(at::Tensor());
    const ConvolutionCall call = constants.with(A_or_none);
    save_convolution(ctx, call, {x, F, A_or_none, bias.value_or(at::Tensor())});
    const at::AutoDispatchBelowADInplaceOrView below;
    return dispatch_convolution(x, F, bias, call);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(5);
    if (!grads[0].defined()) return result;
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &F = saved[1], &A = saved[2], &bias = saved[3];
    const ConvolutionCall call = restore_convolution(ctx, saved, 4, A);
    const bool has_bias = bias.defined();
    const Mask mask{ctx->needs_input_grad(0), ctx->needs_input_grad(1),
                    A.defined() && ctx->needs_input_grad(has_bias ? 3 : 2)};
    if (mask[0] || mask[1] || mask[2])
      std::tie(result[0], result[1], result[3]) = dispatch_convolution_backward(grads[0], x, F, call, mask);
    if (has_bias && ctx->needs_input_grad(2)) {
      std::vector<int64_t> axes{0};
      for (int64_t axis = 2; axis < grads[0].dim(); ++axis) axes.push_back(axis);
      result[2] = grads[0].sum(axes, false, bias.scalar_type());
    }
    return result;
  }
};

// With v, P, B the gradients that reach dx, dF, dA:
//   for grad: convolution(v, F, A) + convolution(x, P, A) + convolution(x, F, B)
//   for x, F, A: convolution_backward at (v, F, A), (x, P, A), (x, F, B), without the part that v, P or B
//   stands for.
struct ConvolutionBackward : torch::autograd::Function<ConvolutionBackward> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& grad, const at::Tensor& x,
                               const at::Tensor& F, const Optional& A, const ConvolutionConstants& constants,
                               Mask mask) {
    const ConvolutionCall call = constants.with(A.value_or(at::Tensor()));
    save_convolution(ctx, call, {grad, x, F, A.value_or(at::Tensor())});
    ctx->saved_data["mask"] = static_cast<int64_t>(mask[0] | mask[1] << 1 | mask[2] << 2);
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto [dx, dF, dA] = dispatch_convolution_backward(grad, x, F, call, mask);
    variable_list outputs;  // only those that are defined
    for (const at::Tensor& t : {dx, dF, dA})
      if (t.defined()) outputs.push_back(t);
    return outputs;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &g = saved[0], &x = saved[1], &F = saved[2], &A = saved[3];
    const ConvolutionCall call = restore_convolution(ctx, saved, 4, A);
    const int64_t mask = ctx->saved_data["mask"].toInt();
    std::array<at::Tensor, 3> upstream;
    for (size_t part = 0, next = 0; part < 3; ++part)
      if (mask >> part & 1) upstream[part] = grads[next++];
    const auto& [v, P, B] = upstream;

    const bool want_g = ctx->needs_input_grad(0), want_x = ctx->needs_input_grad(1),
               want_F = ctx->needs_input_grad(2), want_A = A.defined() && ctx->needs_input_grad(3);
    at::Tensor dg, dx, dF, dA;
    const auto add = [&](const at::Tensor& at_x, const at::Tensor& at_F, const ConvolutionCall& at,
                         Mask wanted) {
      if (want_g) dg = sum_of(dg, dispatch_convolution(at_x, at_F, std::nullopt, at));
      if (!wanted[0] && !wanted[1] && !wanted[2]) return;
      const auto [more_x, more_F, more_A] = dispatch_convolution_backward(g, at_x, at_F, at, wanted);
      dx = sum_of(dx, more_x), dF = sum_of(dF, more_F), dA = sum_of(dA, more_A);
    };
    if (v.defined()) add(v, F, call, {false, want_F, want_A});
    if (P.defined()) add(x, P, call, {want_x, false, want_A});
    if (B.defined()) {
      // A direction has no factors, and none are sought for what never comes again.
      ConvolutionCall perturbed = call;
      perturbed.map.A = B;
      perturbed.map.way = Way::materialised;
      perturbed.map.factors.clear();
      add(x, F, perturbed, {want_x, want_F, false});
    }
    return {typed(dg, g), typed(dx, x), typed(dF, F), dA, {}, {}};
  }
};

}  // namespace autograd

namespace {

at::Tensor convolution_autograd(const at::Tensor& x, const at::Tensor& F, const Optional& bias,
                                const ConvolutionCall& given_call) {
  const at::Tensor bias_or_none = bias.value_or(at::Tensor()),
                   A_or_none = given_call.map.A.value_or(at::Tensor());
  if (transformed_convolution({x, F, bias_or_none, A_or_none}))
    return traced::convolution(x, F, bias, given_call);
  const bool trains = at::GradMode::is_enabled() && (wants_grad(F) || wants_grad(A_or_none));
  if (!trains && !(at::GradMode::is_enabled() && (wants_grad(x) || wants_grad(bias_or_none)))) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return dispatch_convolution(x, F, bias, given_call);
  }
  ConvolutionCall call = given_call;
  // A weight that is being trained is about to change: nothing is worth preparing.
  call.map.constant = call.map.constant && !trains;
  return autograd::Convolution::apply(x, F, bias, call.map.A, ConvolutionConstants{call});
}

Gradients convolution_backward_autograd(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                                        const ConvolutionCall& call, Mask mask) {
  const at::Tensor A_or_none = call.map.A.value_or(at::Tensor());
  const bool differentiable = at::GradMode::is_enabled() &&
                              (wants_grad(grad) || wants_grad(x) || wants_grad(F) || wants_grad(A_or_none));
  // Where A holds the factors, the form is not linear in it.
  if (transformed_convolution({grad, x, F, A_or_none}) || (differentiable && call.map.factored()))
    return traced::convolution_backward(grad, x, F, call, mask);
  mask[2] = mask[2] && A_or_none.defined();
  if (!differentiable) {
    const at::AutoDispatchBelowADInplaceOrView below;
    return dispatch_convolution_backward(grad, x, F, call, mask);
  }
  const variable_list parts =
      autograd::ConvolutionBackward::apply(grad, x, F, call.map.A, ConvolutionConstants{call}, mask);
  std::array<at::Tensor, 3> result;
  for (size_t part = 0, next = 0; part < 3; ++part)
    if (mask[part]) result[part] = parts[next++];
  return {result[0], result[1], result[2]};
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, Autograd, m) {
  m.impl("convolution", &convolution_schema<&convolution_autograd>);
  m.impl("convolution_backward", &convolution_backward_schema<&convolution_backward_autograd>);
}

}  // namespace quatrain::ops
