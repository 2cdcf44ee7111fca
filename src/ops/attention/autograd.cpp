// The derivative of hypercomplex_attention_forward. Nothing is kept for it but the inputs: weights are made
// again.

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "ops/attention/attention.h"

namespace quatrain::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const std::string& algebra,
                            const std::optional<at::Tensor>& padding, double dropout,
                            const std::optional<at::Tensor>& seed) {
    ctx->save_for_backward({query, key, value, padding.value_or(at::Tensor()), seed.value_or(at::Tensor())});
    ctx->set_materialize_grads(false);
    ctx->saved_data["algebra"] = algebra;
    ctx->saved_data["dropout"] = dropout;
    const at::AutoDispatchBelowADInplaceOrView below;
    return attention_forward(query, key, value, algebra, padding, dropout, seed);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(7);
    if (!grads[0].defined()) return result;
    const variable_list saved = ctx->get_saved_variables();
    const auto optional = [](const at::Tensor& t) { return t.defined() ? std::optional(t) : std::nullopt; };
    // For a derivative of higher order the gradient is composed, and recorded as such.
    const auto backward = at::GradMode::is_enabled() ? composed::attention_backward : attention_backward;
    std::tie(result[0], result[1], result[2]) =
        backward(grads[0], saved[0], saved[1], saved[2], ctx->saved_data["algebra"].toStringRef(),
                 optional(saved[3]), ctx->saved_data["dropout"].toDouble(), optional(saved[4]));
    return result;
  }
};

at::Tensor attention_autograd(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              std::string_view algebra, const std::optional<at::Tensor>& padding,
                              double dropout, const std::optional<at::Tensor>& seed) {
  if (at::GradMode::is_enabled() && (query.requires_grad() || key.requires_grad() || value.requires_grad()))
    return AttentionFunction::apply(query, key, value, std::string(algebra), padding, dropout, seed);
  const at::AutoDispatchBelowADInplaceOrView below;
  return attention_forward(query, key, value, algebra, padding, dropout, seed);
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, Autograd, m) {
  m.impl("hypercomplex_attention_forward", &attention_autograd);
}

}  // namespace quatrain::ops
