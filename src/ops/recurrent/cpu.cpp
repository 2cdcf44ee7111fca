// A recurrence on a CPU in float32, step by step on maps that are resolved once.

#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <torch/library.h>

#include <cstring>

#include "ops/recurrent/schema.h"
#include "ops/recurrent/step_gates.h"

namespace quatrain::ops {

namespace {

// Of gates that stand in `inputs`, or that `of_inputs` make of it.
States run(const RecurrenceCall& call, const at::Tensor& inputs, const GateMaps* of_inputs,
           const StateMaps& maps, const Steps& steps, const at::Tensor& h0, const Optional& c0, bool keep) {
  const int64_t N = inputs.size(0), B = h0.size(0), n = call.n(), p = call.p(), width = n * p,
                state_width = h0.size(1), q = state_width / n, all = gates(call.cell),
                kept_width = keep ? kept_values(call.cell) * width : 0;
  const bool memory = has_memory(call.cell);
  const auto make = [&](int64_t rows, int64_t columns) {
    return at::empty({rows, columns}, inputs.options());
  };
  const at::Tensor y = make(N, state_width), h = make(B, state_width).copy_(h0),
                   c = make(memory ? B : 0, width), kept = make(keep ? N : 0, kept_values(call.cell) * width),
                   r = make(B, all * width), output = maps.projection ? make(B, width) : h;  // the cells'
  if (memory) c.copy_(*c0);
  at::Tensor masked, mask;
  if (call.mask) mask = call.mask->contiguous(), masked = at::mul(h, mask);
  const float* const M = engine::values_or_null(mask);
  float *const H = h.mutable_data_ptr<float>(), *const C = c.mutable_data_ptr<float>(),
               *const R = r.mutable_data_ptr<float>(), *const Y = y.mutable_data_ptr<float>(),
               *const K = kept.mutable_data_ptr<float>(), *const U = output.mutable_data_ptr<float>(),
               *const state = call.mask ? masked.mutable_data_ptr<float>() : H;
  const auto& kernels = kernels::cpu::active();
  const Split split(steps, maps, n, !of_inputs || of_inputs->splits());
  const StepGates step_gates(inputs, of_inputs, all * width, steps, split, call.reverse);
  engine::Team::run(split.threads(), [&](const engine::Team::Member& member) {
    StepGates::Reader reader(step_gates, member);
    for (int64_t i = 0; i < steps.count(); ++i) {
      const auto t = static_cast<size_t>(steps.at(i, call.reverse));
      const int64_t first = steps.first[t];
      const Split::Part part = split.part(member, steps.sizes[t]);
      const auto z = reader.step(i);
      const auto store = [&](int64_t row, int64_t component) {
        const int64_t at = row * state_width + component * q;
        if (M) multiply(H + at, M + at, q, state + at);
        std::memcpy(Y + first * state_width + at, H + at, static_cast<size_t>(q) * sizeof(float));
      };
      maps.gates.apply(part.rows, part.blocks, state, R);
      split.wait(member);
      for_each_cell(part.cells, n, p, 32 * all, [&](int64_t row, int64_t component) {
        const int64_t at = row * width + component * p;
        float* const gates = R + at * all;
        kernels.cell_step(
            cell_of(call.cell),
            {.units = p,
             .z = z.data + (at - z.first * width) * all,
             .z_gate = p,
             .r = gates,
             .r_gate = p,
             .c = memory ? C + at : nullptr,
             .h = U + at,
             .kept = keep ? K + (first + row) * kept_width + component * (kept_width / n) : nullptr});
        if (!maps.projection) store(row, component);
      });
      split.wait(member);
      if (!maps.projection) continue;
      maps.projection->apply(part.rows, split.share(member, maps.projection->blocks()), U, H);
      split.wait(member);
      for_each_cell(part.cells, n, q, 1, store);
      split.wait(member);
    }
  });
  return {y, h, c, kept};
}

States recurrence_cpu(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0,
                      const Optional& c0, bool keep) {
  check_recurrence(call, z, h0, c0);
  if (z.scalar_type() == at::kFloat && z.size(0) > 0) {
    const Steps steps(call.batch_sizes, z.size(0), h0.size(0));
    const StateMaps maps(call, h0.size(0), steps.count(), BilinearMap::Pass::forward);
    if (maps.on_engine()) return run(call, z, nullptr, maps, steps, h0, c0, keep);
  }
  return composed::recurrence(call, z, h0, c0, keep);
}

LayerStates recurrent_layer_cpu(const RecurrenceCall& call, const InputCall& inputs, const at::Tensor& h0,
                                const Optional& c0) {
  check_recurrent_layer(call, inputs, h0, c0);
  const at::Tensor& x = inputs.x;
  if (x.scalar_type() == at::kFloat && x.size(0) > 0) {
    const Steps steps(call.batch_sizes, x.size(0), h0.size(0));
    const GateMaps of_inputs(inputs.S, inputs.maps, gates(call.cell), inputs.bias,
                             StepGates::rows_at_once(steps), steps.count(), BilinearMap::Pass::forward);
    const StateMaps maps(call, h0.size(0), steps.count(), BilinearMap::Pass::forward);
    if (of_inputs.on_engine() && maps.on_engine()) {
      const auto [y, h, c, kept] = run(call, x, &of_inputs, maps, steps, h0, c0, false);
      return {y, h, c};
    }
  }
  return composed::recurrent_layer(call, inputs, h0, c0);
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("recurrence", &recurrence_schema<&recurrence_cpu>);
  m.impl("recurrent_layer", &recurrent_layer_schema<&recurrent_layer_cpu>);
}

}  // namespace quatrain::ops
