// The derivative of a recurrence. The way back through time gives the gradients of the gates; those of the
// weights are one product over all steps.

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "ops/linear/schema.h"
#include "ops/recurrent/schema.h"
#include "ops/transforms.h"

namespace quatrain::ops {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// In a wrapper, so that autograd does not see its tensors as inputs: they have no gradient.
struct RecurrenceConstants {
  RecurrenceCall call;
};

/// The inputs that are differentiated, in the order of Recurrence::forward.
struct RecurrenceInputs {
  at::Tensor z, h0, c0, bias;
  variable_list S, A;
};

Optional optional(const at::Tensor& t) {
  return t.defined() ? Optional(t) : std::nullopt;
}

/// Each input as a place of its own in autograd's graph. Derivatives with respect to these are partial ones:
/// what one input has to do with another, as a state that came of the same weights, is not followed.
RecurrenceInputs apart(const RecurrenceInputs& in) {
  const auto alias = [](const at::Tensor& t) { return wants_grad(t) ? t.view_as(t) : t; };
  RecurrenceInputs result{alias(in.z), alias(in.h0), alias(in.c0), alias(in.bias), {}, {}};
  for (const at::Tensor& t : in.S) result.S.push_back(alias(t));
  for (const at::Tensor& t : in.A) result.A.push_back(alias(t));
  return result;
}

}  // namespace

// What profiles name.
namespace autograd {

struct Recurrence : torch::autograd::Function<Recurrence> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& z, const at::Tensor& h0,
                               const Optional& c0, const Optional& bias, at::TensorList S, at::TensorList A,
                               const RecurrenceConstants& constants) {
    const RecurrenceCall& call = constants.call;
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto [y, h, c, kept] = dispatch_recurrence(call, z, h0, c0, true);
    variable_list tensors{z, h0,   value_or_none(c0), value_or_none(bias),
                          y, kept, call.batch_sizes,  value_or_none(call.mask)};
    ctx->saved_data["maps"] = static_cast<int64_t>(S.size());
    ctx->saved_data["learned"] = !A.empty();
    ctx->saved_data["algebra"] = call.maps[0].algebra;
    ctx->saved_data["cell"] = static_cast<int64_t>(call.cell);
    ctx->saved_data["reverse"] = call.reverse;
    for (const at::Tensor& t : S) tensors.push_back(t);
    for (const at::Tensor& t : A) tensors.push_back(t);
    for (const Call& map : call.maps)
      for (const at::Tensor& t : map.factors) tensors.push_back(t);
    ctx->save_for_backward(std::move(tensors));
    ctx->set_materialize_grads(false);
    return {y, h, c};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const variable_list saved = ctx->get_saved_variables();
    const auto maps = static_cast<size_t>(ctx->saved_data["maps"].toInt());
    const size_t learned = ctx->saved_data["learned"].toBool() ? maps : 0;
    const auto part = [&](size_t begin, size_t count) {
      const auto from = saved.begin() + static_cast<std::ptrdiff_t>(begin);
      return variable_list(from, from + static_cast<std::ptrdiff_t>(count));
    };
    RecurrenceInputs in{saved[0], saved[1], saved[2], saved[3], part(8, maps), part(8 + maps, learned)};
    if (at::GradMode::is_enabled()) in = apart(in);
    const variable_list factors = part(8 + maps + learned, saved.size() - 8 - maps - learned);
    RecurrenceCall call = make_recurrence_call(saved[6], in.S, ctx->saved_data["algebra"].toStringRef(), in.A,
                                               factors, optional(in.bias), optional(saved[7]), "lstm",
                                               ctx->saved_data["reverse"].toBool(), false);
    call.cell = static_cast<Cell>(ctx->saved_data["cell"].toInt());
    const bool memory = in.c0.defined(), biased = in.bias.defined();
    // Edges of undefined inputs do not exist.
    const size_t bias_at = memory ? 3 : 2, S_at = bias_at + (biased ? 1 : 0);
    const auto wanted = [&](size_t edge) { return ctx->needs_input_grad(edge); };
    const Gradient gradient = at::GradMode::is_enabled()
                                  ? recorded(call, in, grads)
                                  : computed(call, in, grads, saved[4], saved[5], wanted, bias_at, S_at);
    variable_list result{gradient.z, gradient.h0, gradient.c0, gradient.bias};
    result.insert(result.end(), gradient.S.begin(), gradient.S.end());
    result.insert(result.end(), gradient.A.begin(), gradient.A.end());
    result.emplace_back();
    return result;
  }

 private:
  struct Gradient {
    at::Tensor z, h0, c0, bias;
    variable_list S, A;
  };

  template <class Wanted>
  static Gradient computed(const RecurrenceCall& call, const RecurrenceInputs& in, const variable_list& grads,
                           const at::Tensor& y, const at::Tensor& kept, Wanted wanted, size_t bias_at,
                           size_t S_at) {
    const auto [dz, own_dr, dh0, dc0, h_before, projected] = dispatch_recurrence_backward(
        call, {optional(grads[0]), optional(grads[1]), optional(grads[2])}, y, kept, in.h0, optional(in.c0));
    const at::Tensor dr = call.cell == Cell::gru ? own_dr : dz;
    Gradient result{dz,
                    dh0,
                    in.c0.defined() ? dc0 : at::Tensor(),
                    {},
                    variable_list(in.S.size()),
                    variable_list(in.A.size())};
    if (in.bias.defined() && wanted(bias_at)) result.bias = dr.sum(0);
    // Operators of which the vmap of is_grads_batched has rules.
    const c10::SymInt rows = dr.sym_size(0), n = call.S[0].sym_size(0),
                      width = dr.sym_size(1) / gates(call.cell);
    const at::Tensor by_gate = dr.reshape_symint({rows, n, gates(call.cell), width / n});
    for (size_t k = 0; k < in.S.size(); ++k) {
      const bool of_S = wanted(S_at + k), of_A = !in.A.empty() && wanted(S_at + in.S.size() + k);
      if (!of_S && !of_A) continue;
      const bool projection = k >= call.gate_maps();
      const at::Tensor g = projection ? projected
                           : call.gate_maps() == 1
                               ? dr
                               : by_gate.select(2, static_cast<int64_t>(k)).reshape_symint({rows, width});
      const at::Tensor x = projection ? composed::unprojected(call, kept) : h_before;
      const auto [none, dS, dA] = dispatch_linear_backward(g, x, in.S[k], call.maps[k], {false, of_S, of_A});
      result.S[k] = dS;
      if (of_A) result.A[k] = dA;
    }
    return result;
  }

  // For a derivative of higher order it is composed again and differentiated, which autograd records.
  static Gradient recorded(const RecurrenceCall& call, const RecurrenceInputs& in,
                           const variable_list& grads) {
    const auto [y, h, c, kept] = composed::recurrence(call, in.z, in.h0, optional(in.c0), false);
    variable_list outputs, upstream, of;
    for (const auto& [output, grad] :
         {std::pair{y, grads[0]}, std::pair{h, grads[1]}, std::pair{c, grads[2]}})
      if (grad.defined() && output.requires_grad()) outputs.push_back(output), upstream.push_back(grad);
    Gradient result{{}, {}, {}, {}, variable_list(in.S.size()), variable_list(in.A.size())};
    std::vector<at::Tensor*> to;
    const auto add = [&](const at::Tensor& t, at::Tensor& place) {
      if (wants_grad(t)) of.push_back(t), to.push_back(&place);
    };
    add(in.z, result.z), add(in.h0, result.h0), add(in.c0, result.c0), add(in.bias, result.bias);
    for (size_t k = 0; k < in.S.size(); ++k) add(in.S[k], result.S[k]);
    for (size_t k = 0; k < in.A.size(); ++k) add(in.A[k], result.A[k]);
    if (outputs.empty() || of.empty()) return result;
    const variable_list found =
        torch::autograd::grad(outputs, of, upstream, /*retain_graph=*/true, /*create_graph=*/true,
                              /*allow_unused=*/true);
    for (size_t i = 0; i < to.size(); ++i) *to[i] = found[i];
    return result;
  }
};

}  // namespace autograd

namespace {

States recurrence_autograd(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0,
                           const Optional& c0, bool keep) {
  if (in_function_transform() || any_of(call, z, h0, c0, &has_tangent) ||
      (at::GradMode::is_enabled() && wants_grad(value_or_none(call.mask))))
    return composed::recurrence(call, z, h0, c0, keep);
  if (at::GradMode::is_enabled() && any_of(call, z, h0, c0, &wants_grad)) {
    TORCH_CHECK(!keep, "recurrence: keep is for the derivative alone, which is recorded here");
    RecurrenceCall training = call;
    std::vector<at::Tensor> A;
    for (Call& map : training.maps) {
      map.constant = false;  // about to change: nothing is worth preparing
      if (map.learned()) A.push_back(*map.A);
    }
    const auto y = autograd::Recurrence::apply(z, h0, c0, call.bias, at::TensorList(call.S),
                                               at::TensorList(A), RecurrenceConstants{training});
    return {y[0], y[1], y[2], at::empty_symint({0, kept_values(call.cell) * call.hidden()}, z.options())};
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  return dispatch_recurrence(call, z, h0, c0, keep);
}

// Training calls it below autograd, or composes it.
StateGradients constant_backward(const RecurrenceCall& call, const Upstream& grads, const at::Tensor& y,
                                 const at::Tensor& kept, const at::Tensor& h0, const Optional& c0) {
  const at::AutoDispatchBelowADInplaceOrView below;
  return dispatch_recurrence_backward(call, grads, y, kept, h0, c0);
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, Autograd, m) {
  m.impl("recurrence", &recurrence_schema<&recurrence_autograd>);
  m.impl("recurrence_backward", &recurrence_backward_schema<&constant_backward>);
}

}  // namespace quatrain::ops
