// The derivative of hypercomplex_attention_forward. Nothing is kept for it but the inputs: weights are made
// again.

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "ops/attention/call.h"
#include "ops/transforms.h"

namespace quatrain::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// In a wrapper, so that autograd does not see its tensors as inputs: they have no gradient.
struct Constants {
  AttentionCall call;
};

void save(AutogradContext* ctx, const AttentionCall& call, variable_list tensors) {
  const AttentionOptions& o = call.options;
  for (const at::Tensor& t : {o.padding, o.mask, call.seed}) tensors.push_back(t);
  ctx->save_for_backward(std::move(tensors));
  ctx->set_materialize_grads(false);
  ctx->saved_data["algebra"] = o.algebra;
  ctx->saved_data["causal"] = o.causal;
  ctx->saved_data["offset"] = o.offset;
  ctx->saved_data["scale"] = o.scale;
  ctx->saved_data["order"] = static_cast<int64_t>(o.order);
  ctx->saved_data["dropout"] = o.dropout;
}

/// What save() kept behind three tensors.
AttentionCall restore(AutogradContext* ctx, const variable_list& saved) {
  auto& data = ctx->saved_data;
  AttentionCall call = attention_call({.algebra = data["algebra"].toStringRef(),
                                       .padding = saved[3],
                                       .mask = saved[4],
                                       .causal = data["causal"].toBool(),
                                       .offset = data["offset"].toSymInt(),
                                       .scale = data["scale"].toOptional<double>(),
                                       .order = static_cast<ProductOrder>(data["order"].toInt()),
                                       .dropout = data["dropout"].toDouble()});
  call.seed = saved[5];
  return call;
}

}  // namespace

// What profiles name.
namespace autograd {

struct Attention : torch::autograd::Function<Attention> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const Constants& constants) {
    save(ctx, constants.call, {query, key, value});
    const at::AutoDispatchBelowADInplaceOrView below;
    return attention_forward(constants.call, query, key, value);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(4);
    if (!grads[0].defined()) return result;
    const variable_list saved = ctx->get_saved_variables();
    // For a derivative of higher order the gradient is composed, and recorded as such.
    const auto backward = at::GradMode::is_enabled() ? composed::attention_backward : attention_backward;
    std::tie(result[0], result[1], result[2]) =
        backward(restore(ctx, saved), grads[0], saved[0], saved[1], saved[2]);
    return result;
  }
};

}  // namespace autograd

namespace {

at::Tensor attention_autograd(const AttentionCall& call, const at::Tensor& query, const at::Tensor& key,
                              const at::Tensor& value) {
  if (at::GradMode::is_enabled()) {
    // The kernels have none for a mask; what composes them has.
    if (wants_grad(call.options.mask)) return composed::attention(call, query, key, value);
    if (wants_grad(query) || wants_grad(key) || wants_grad(value))
      return autograd::Attention::apply(query, key, value, Constants{call});
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return attention_forward(call, query, key, value);
}

AttentionGradients attention_backward_autograd(const AttentionCall& call, const at::Tensor& grad,
                                               const at::Tensor& query, const at::Tensor& key,
                                               const at::Tensor& value) {
  if (at::GradMode::is_enabled())
    for (const at::Tensor& t : {grad, query, key, value, call.options.mask})
      if (wants_grad(t)) return composed::attention_backward(call, grad, query, key, value);
  const at::AutoDispatchBelowADInplaceOrView below;
  return attention_backward(call, grad, query, key, value);
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, Autograd, m) {
  m.impl("hypercomplex_attention_forward", &Seeded<&attention_autograd>::run);
  m.impl("hypercomplex_attention_backward", &Seeded<&attention_backward_autograd>::run);
}

}  // namespace quatrain::ops
