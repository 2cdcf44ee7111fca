// A recurrence on a CPU in float32, step by step on maps that are resolved once.

#include <ATen/ops/empty.h>
#include <ATen/ops/mul.h>
#include <torch/library.h>

#include <cstring>

#include "ops/recurrent/schema.h"
#include "ops/recurrent/state_maps.h"

namespace quatrain::ops {

namespace {

void add(const float* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

States recurrence_cpu(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0,
                      const Optional& c0, bool keep) {
  const auto compose = [&] { return composed::recurrence(call, z, h0, c0, keep); };
  if (z.scalar_type() != at::kFloat || call.projects()) return compose();
  check_recurrence(call, z, h0, c0);
  const int64_t N = z.size(0), B = h0.size(0), n = call.n(), p = call.p(), width = n * p;
  const Steps steps(call.batch_sizes, N, B);
  const StateMaps maps(call, B, steps.count(), BilinearMap::Pass::forward);
  if (N == 0 || !maps.on_engine()) return compose();
  const int64_t all = gates(call.cell), kept_width = keep ? kept_values(call.cell) * width : 0;
  const bool memory = has_memory(call.cell);
  const at::Tensor x = z.contiguous(), y = at::empty({N, width}, z.options()),
                   h = at::empty({B, width}, z.options()).copy_(h0),
                   c = at::empty({memory ? B : 0, width}, z.options()),
                   kept = at::empty({keep ? N : 0, kept_values(call.cell) * width}, z.options()),
                   r = at::empty({B, all * width}, z.options());
  if (memory) c.copy_(*c0);
  at::Tensor masked, mask, bias;
  if (call.mask) mask = call.mask->contiguous(), masked = at::mul(h, mask);
  if (call.bias) bias = call.bias->contiguous();
  const auto data = [](const at::Tensor& t) { return t.defined() ? t.const_data_ptr<float>() : nullptr; };
  const float *const from = data(x), *const M = data(mask), *const bias_values = data(bias);
  float *const H = h.mutable_data_ptr<float>(), *const C = c.mutable_data_ptr<float>(),
               *const R = r.mutable_data_ptr<float>(), *const Y = y.mutable_data_ptr<float>(),
               *const K = kept.mutable_data_ptr<float>(),
               *const state = call.mask ? masked.mutable_data_ptr<float>() : H;
  const auto& kernels = kernels::cpu::active();
  const Split split(steps, maps, n);
  engine::Team::run(split.threads(), [&](const engine::Team::Member& member) {
    for (int64_t i = 0; i < steps.count(); ++i) {
      const auto t = static_cast<size_t>(steps.at(i, call.reverse));
      const int64_t first = steps.first[t];
      const Split::Part part = split.part(member, steps.sizes[t]);
      maps.apply(part.rows, part.blocks, state, R, bias_values);
      split.wait(member);
      for_each_cell(part.cells, n, p, 32 * all, [&](int64_t row, int64_t component) {
        const int64_t at = row * width + component * p;
        float* const gates = R + at * all;
        if (bias_values && !maps.adds_bias()) add(bias_values + component * p * all, p * all, gates);
        kernels.cell_step(
            cell_of(call.cell),
            {.units = p,
             .z = from + (first * width + at) * all,
             .z_gate = p,
             .r = gates,
             .r_gate = p,
             .c = memory ? C + at : nullptr,
             .h = H + at,
             .kept = keep ? K + (first + row) * kept_width + component * (kept_width / n) : nullptr});
        if (M) multiply(H + at, M + at, p, state + at);
        std::memcpy(Y + first * width + at, H + at, static_cast<size_t>(p) * sizeof(float));
      });
      split.wait(member);
    }
  });
  return {y, h, c, kept};
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("recurrence", &recurrence_schema<&recurrence_cpu>);
}

}  // namespace quatrain::ops
