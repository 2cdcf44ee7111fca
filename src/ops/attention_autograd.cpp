// The derivative of attention made tile by tile. Nothing is kept for it but the inputs: the weights are made
// again.

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/attention.h"

namespace quatrain::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct AttentionFunction : torch::autograd::Function<AttentionFunction> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& value, const std::string& algebra,
                            const std::optional<at::Tensor>& padding, double dropout, int64_t seed) {
    ctx->save_for_backward({query, key, value, padding.value_or(at::Tensor())});
    ctx->set_materialize_grads(false);
    ctx->saved_data["algebra"] = algebra;
    ctx->saved_data["dropout"] = dropout;
    ctx->saved_data["seed"] = seed;
    const at::AutoDispatchBelowADInplaceOrView below;
    return attention_forward(query, key, value, algebra, padding, dropout, seed);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(7);
    if (!grads[0].defined()) return result;
    const variable_list saved = ctx->get_saved_variables();
    const std::optional<at::Tensor> padding =
        saved[3].defined() ? std::optional<at::Tensor>(saved[3]) : std::nullopt;
    // For a derivative of higher order the gradient is composed, and recorded as such.
    const auto backward = at::GradMode::is_enabled() ? composed::attention_backward : attention_backward;
    std::tie(result[0], result[1], result[2]) =
        backward(grads[0], saved[0], saved[1], saved[2], ctx->saved_data["algebra"].toStringRef(), padding,
                 ctx->saved_data["dropout"].toDouble(), ctx->saved_data["seed"].toInt());
    return result;
  }
};

}  // namespace

at::Tensor recorded_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                              std::string_view algebra, const std::optional<at::Tensor>& padding,
                              double dropout, int64_t seed) {
  return AttentionFunction::apply(query, key, value, std::string(algebra), padding, dropout, seed);
}

}  // namespace quatrain::ops
