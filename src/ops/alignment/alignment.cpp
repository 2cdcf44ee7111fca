// What each word of two texts sees in the other one: two calls of attention, or on a CPU one kernel for both.

#include "ops/alignment/alignment.h"

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "ops/attention/call.h"
#include "ops/transforms.h"
#include "quatrain/pair_ops.h"

namespace quatrain::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Rows of E = A * B^T are words of the first text. Its transpose has those words on the left of the product
/// too, although they are its keys.
AlignmentCalls calls_of(std::string_view algebra, const at::Tensor& first_padding,
                        const at::Tensor& second_padding) {
  const std::string name(algebra);
  return {attention_call({.algebra = name, .padding = second_padding, .scale = 1}),
          attention_call(
              {.algebra = name, .padding = first_padding, .scale = 1, .order = ProductOrder::key_query})};
}

bool kernels_take(const AlignmentCalls& calls, const at::Tensor& A, const at::Tensor& B) {
  if (in_function_transform() || at::autocast::is_autocast_enabled(at::kCPU)) return false;
  for (const at::Tensor* t : {&A, &B, &calls.first_sees.options.padding, &calls.second_sees.options.padding})
    if (!is_plain(*t)) return false;
  return cpu::aligns_together(calls, A, B, at::GradMode::is_enabled() && (wants_grad(A) || wants_grad(B)));
}

variable_list composed_backward(const AlignmentCalls& calls, const at::Tensor& of_first,
                                const at::Tensor& of_second, const at::Tensor& A, const at::Tensor& B) {
  const auto [dA, dB, dB_seen] = composed::attention_backward(calls.first_sees, of_first, A, B, B);
  const auto [dB_sees, dA_key, dA_seen] = composed::attention_backward(calls.second_sees, of_second, B, A, A);
  return {dA + dA_key + dA_seen, dB + dB_seen + dB_sees};
}

}  // namespace

// What profiles name.
namespace autograd {

struct Alignment : torch::autograd::Function<Alignment> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& A, const at::Tensor& B,
                               const at::Tensor& first_padding, const at::Tensor& second_padding,
                               const std::string& algebra) {
    ctx->save_for_backward({A, B, first_padding, second_padding});
    ctx->set_materialize_grads(false);
    ctx->saved_data["algebra"] = algebra;
    const auto [of_first, of_second] = cpu::alignment(calls_of(algebra, first_padding, second_padding), A, B);
    return {of_first, of_second};
  }

  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    variable_list result(5);
    if (!grads[0].defined() && !grads[1].defined()) return result;
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &A = saved[0], &B = saved[1];
    for (const int side : {0, 1})
      if (!grads[side].defined())
        grads[side] = at::zeros({saved[side].size(0), saved[side].size(1), saved[side][0][0].numel()},
                                saved[side].options());
    const AlignmentCalls calls = calls_of(ctx->saved_data["algebra"].toStringRef(), saved[2], saved[3]);
    // For a derivative of higher order the gradient is composed, and recorded as such.
    const bool by_kernels = !at::GradMode::is_enabled() && is_plain(grads[0]) && is_plain(grads[1]) &&
                            grads[0].scalar_type() == at::kFloat && grads[1].scalar_type() == at::kFloat;
    if (by_kernels) {
      std::tie(result[0], result[1]) = cpu::alignment_backward(calls, grads[0], grads[1], A, B);
    } else {
      const variable_list both = composed_backward(calls, grads[0], grads[1], A, B);
      result[0] = both[0], result[1] = both[1];
    }
    return result;
  }
};

}  // namespace autograd

std::tuple<at::Tensor, at::Tensor> hypercomplex_alignment(const at::Tensor& A, const at::Tensor& B,
                                                          const at::Tensor& first_padding,
                                                          const at::Tensor& second_padding,
                                                          std::string_view algebra) {
  const AlignmentCalls calls = calls_of(algebra, first_padding, second_padding);
  check_attention(calls.first_sees, A, B, B);
  check_attention(calls.second_sees, B, A, A);
  if (!kernels_take(calls, A, B))
    return {hypercomplex_attention(A, B, B, calls.first_sees.options),
            hypercomplex_attention(B, A, A, calls.second_sees.options)};
  if (!at::GradMode::is_enabled() || !(wants_grad(A) || wants_grad(B))) return cpu::alignment(calls, A, B);
  const variable_list both =
      autograd::Alignment::apply(A, B, first_padding, second_padding, std::string(algebra));
  return {both[0], both[1]};
}

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.def(
      "hypercomplex_alignment(Tensor first, Tensor second, Tensor first_padding, Tensor second_padding, "
      "str algebra) -> (Tensor, Tensor)",
      &hypercomplex_alignment);
}

// vmap sees what it is composed of.
TORCH_LIBRARY_IMPL(quatrain, FuncTorchBatchedDecomposition, m) {
  m.impl("hypercomplex_alignment", &hypercomplex_alignment);
}

}  // namespace quatrain::ops
