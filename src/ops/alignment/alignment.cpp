// What each word of two texts sees in the other one: two calls of attention, or on a CPU one kernel for both.

#include "ops/alignment/alignment.h"

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "ops/attention/call.h"
#include "ops/transforms.h"
#include "quatrain/pair_ops.h"

namespace quatrain::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

bool kernels_take(const AlignmentCalls& calls, const at::Tensor& A, const at::Tensor& B) {
  if (in_function_transform() || at::autocast::is_autocast_enabled(at::kCPU)) return false;
  for (const at::Tensor* t : {&A, &B, &calls.first_sees.options.padding, &calls.second_sees.options.padding})
    if (!is_plain(*t)) return false;
  return cpu::aligns_together(calls, A, B, at::GradMode::is_enabled() && (wants_grad(A) || wants_grad(B)));
}

/// By two calls of attention. For a derivative of higher order they are composed, and recorded as such.
variable_list backward_by_calls(const AlignmentCalls& calls, const at::Tensor& of_first,
                                const at::Tensor& of_second, const at::Tensor& A, const at::Tensor& B) {
  const auto backward = at::GradMode::is_enabled() || has_tangent(of_first) || has_tangent(of_second)
                            ? composed::attention_backward
                            : attention_backward;
  at::Tensor dA, dB;
  const auto add = [](at::Tensor& sum, const at::Tensor& part) { sum = sum.defined() ? sum + part : part; };
  if (of_first.defined()) {
    const auto [query, key, value] = backward(calls.first_sees, of_first, A, B, B);
    add(dA, query), add(dB, key + value);
  }
  if (of_second.defined()) {
    const auto [query, key, value] = backward(calls.second_sees, of_second, B, A, A);
    add(dB, query), add(dA, key + value);
  }
  return {dA, dB};
}

/// What check_attention would say of other arguments' names.
void check_texts(const at::Tensor& first, const at::Tensor& second, const at::Tensor& first_padding,
                 const at::Tensor& second_padding) {
  TORCH_CHECK(
      first.dim() == 5 && second.dim() == 5 && first.sym_size(0) == second.sym_size(0) &&
          first.sym_sizes().slice(2) == second.sym_sizes().slice(2),
      "hypercomplex_alignment: first and second must be (batch, length, n, heads, values), as cut_heads "
      "cuts them, and may differ in the length alone, got ",
      first.sym_sizes(), " and ", second.sym_sizes());
  for (const auto& [name, padding, text] :
       {std::tuple("first_padding", &first_padding, &first), {"second_padding", &second_padding, &second}}) {
    TORCH_CHECK(padding->defined(), "hypercomplex_alignment: ", name,
                " must be given, bool (batch, length); false where there is a word");
    TORCH_CHECK(padding->scalar_type() == at::kBool && padding->dim() == 2 &&
                    padding->sym_size(0) == text->sym_size(0) && padding->sym_size(1) == text->sym_size(1),
                "hypercomplex_alignment: ", name, " must be bool (batch, length) = (", text->sym_size(0),
                ", ", text->sym_size(1), "), got ", padding->scalar_type(), " ", padding->sym_sizes());
  }
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
    const auto [of_first, of_second] =
        cpu::alignment(alignment_calls(algebra, first_padding, second_padding), A, B);
    return {of_first, of_second};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(5);
    if (!grads[0].defined() && !grads[1].defined()) return result;
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &A = saved[0], &B = saved[1];
    const AlignmentCalls calls =
        alignment_calls(ctx->saved_data["algebra"].toStringRef(), saved[2], saved[3]);
    const auto taken = [](const at::Tensor& t) {
      return !t.defined() || (is_plain(t) && t.scalar_type() == at::kFloat);
    };
    if (at::GradMode::is_enabled() || !taken(grads[0]) || !taken(grads[1])) {
      const variable_list both = backward_by_calls(calls, grads[0], grads[1], A, B);
      result[0] = both[0], result[1] = both[1];
    } else {
      std::tie(result[0], result[1]) = cpu::alignment_backward(calls, grads[0], grads[1], A, B);
    }
    return result;
  }
};

}  // namespace autograd

AlignmentCalls alignment_calls(std::string_view algebra, const at::Tensor& first_padding,
                               const at::Tensor& second_padding) {
  const std::string name(algebra);
  return {attention_call({.algebra = name, .padding = second_padding, .scale = 1}),
          attention_call(
              {.algebra = name, .padding = first_padding, .scale = 1, .order = ProductOrder::key_query})};
}

std::tuple<at::Tensor, at::Tensor> hypercomplex_alignment(const at::Tensor& first, const at::Tensor& second,
                                                          const at::Tensor& first_padding,
                                                          const at::Tensor& second_padding,
                                                          std::string_view algebra) {
  check_texts(first, second, first_padding, second_padding);
  const at::Tensor &A = first, &B = second;
  const AlignmentCalls calls = alignment_calls(algebra, first_padding, second_padding);
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
