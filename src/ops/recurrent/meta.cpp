// The shapes of a recurrence, without values; and autocast.

#include <ATen/autocast_mode.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "ops/recurrent/schema.h"

namespace quatrain::ops {

namespace {

LayerStates empty_states(const RecurrenceCall& call, const at::Tensor& inputs, const at::Tensor& h0) {
  const auto make = [&](const c10::SymInt& size, const c10::SymInt& width) {
    return at::empty_symint({size, width}, inputs.options());
  };
  const c10::SymInt batch = h0.sym_size(0), none = 0, state = call.state();
  return {make(inputs.sym_size(0), state), make(batch, state),
          make(has_memory(call.cell) ? batch : none, call.hidden())};
}

LayerStates recurrent_layer_meta(const RecurrenceCall& call, const InputCall& inputs, const at::Tensor& h0,
                                 const Optional& c0) {
  check_recurrent_layer(call, inputs, h0, c0);
  return empty_states(call, inputs.x, h0);
}

States recurrence_meta(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0,
                       const Optional& c0, bool keep) {
  check_recurrence(call, z, h0, c0);
  const c10::SymInt rows = z.sym_size(0), none = 0;
  const auto [y, h, c] = empty_states(call, z, h0);
  return {y, h, c,
          at::empty_symint({keep ? rows : none, kept_values(call.cell) * call.hidden()}, z.options())};
}

StateGradients recurrence_backward_meta(const RecurrenceCall& call, const Upstream& grads,
                                        const at::Tensor& y, const at::Tensor& kept, const at::Tensor& h0,
                                        const Optional& c0) {
  check_recurrence_backward(call, grads, y, kept, h0, c0);
  const c10::SymInt rows = y.sym_size(0), none = 0, hidden = call.hidden(), state = call.state();
  const auto make = [&](const c10::SymInt& size, const c10::SymInt& width) {
    return at::empty_symint({size, width}, y.options());
  };
  const c10::SymInt width = gates(call.cell) * hidden;
  return {make(rows, width),           make(call.cell == Cell::gru ? rows : none, width),
          make(h0.sym_size(0), state), make(has_memory(call.cell) ? h0.sym_size(0) : none, hidden),
          make(rows, state),           make(call.projects() ? rows : none, state)};
}

// States are sums over all steps: they are kept in float32, as are their maps.
template <c10::DispatchKey key, c10::DeviceType device>
States recurrence_autocast(const RecurrenceCall& given, const at::Tensor& z, const at::Tensor& h0,
                           const Optional& c0, bool keep) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(key);
  const auto wide = [&](const at::Tensor& t) {
    return t.scalar_type() == at::kDouble ? t : at::autocast::cached_cast(at::kFloat, t, device);
  };
  const auto wide_or_none = [&](const Optional& t) { return t ? Optional(wide(*t)) : t; };
  RecurrenceCall call = given;
  for (at::Tensor& S : call.S) S = wide(S);
  call.bias = wide_or_none(call.bias), call.mask = wide_or_none(call.mask);
  return dispatch_recurrence(call, wide(z), wide(h0), wide_or_none(c0), keep);
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, Meta, m) {
  m.impl("recurrent_layer", &recurrent_layer_schema<&recurrent_layer_meta>);
  m.impl("recurrence", &recurrence_schema<&recurrence_meta>);
  m.impl("recurrence_backward", &recurrence_backward_schema<&recurrence_backward_meta>);
}

TORCH_LIBRARY_IMPL(quatrain, AutocastCPU, m) {
  m.impl("recurrence",
         &recurrence_schema<&recurrence_autocast<c10::DispatchKey::AutocastCPU, c10::DeviceType::CPU>>);
}

TORCH_LIBRARY_IMPL(quatrain, AutocastCUDA, m) {
  m.impl("recurrence",
         &recurrence_schema<&recurrence_autocast<c10::DispatchKey::AutocastCUDA, c10::DeviceType::CUDA>>);
}

}  // namespace quatrain::ops
