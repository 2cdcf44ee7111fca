// The way back of a recurrence on a CPU in float32.

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>

#include "ops/recurrent/gate_maps.h"
#include "ops/recurrent/schema.h"

namespace quatrain::ops {

namespace {

StateGradients recurrence_backward_cpu(const RecurrenceCall& call, const Upstream& grads, const at::Tensor& y,
                                       const at::Tensor& kept, const at::Tensor& h0, const Optional& c0) {
  const auto compose = [&] { return composed::recurrence_backward(call, grads, y, kept, h0, c0); };
  check_recurrence_backward(call, grads, y, kept, h0, c0);
  const int64_t N = y.size(0), B = h0.size(0);
  if (y.scalar_type() != at::kFloat || N == 0) return compose();
  const Steps steps(call.batch_sizes, N, B);
  const StateMaps maps(call, B, steps.count(), BilinearMap::Pass::backward);
  if (!maps.on_engine()) return compose();
  const int64_t n = call.n(), p = call.p(), width = n * p, state_width = h0.size(1), q = state_width / n,
                all = gates(call.cell), values = kept_values(call.cell);
  const auto make = [&](int64_t rows, int64_t columns) { return at::empty({rows, columns}, y.options()); };
  const bool memory = has_memory(call.cell), own_dr = call.cell == Cell::gru;
  const auto start = [&](const Optional& grad, const at::Tensor& like) {
    return grad ? at::empty(like.sizes(), like.options()).copy_(*grad)
                : at::zeros(like.sizes(), like.options());
  };
  const at::Tensor dh = start(grads.h, h0), dc = memory ? start(grads.c, *c0) : make(0, width),
                   dz = make(N, all * width), dr = make(own_dr ? N : 0, all * width),
                   before = make(N, state_width), projected = make(maps.projection ? N : 0, state_width),
                   ys = y.contiguous(), starts = h0.contiguous(),
                   memories = memory ? c0->contiguous() : at::Tensor(), keeps = kept.contiguous();
  // The gradient of the cells' outputs. Of an lstm it is 0 again after each step back.
  const at::Tensor d_output = maps.projection ? at::zeros({B, width}, y.options()) : dh;
  at::Tensor dys, through, mask;
  if (grads.y) dys = grads.y->contiguous();
  if (call.mask) through = make(B, state_width), mask = call.mask->contiguous();
  const std::vector<int64_t> from = steps.before(call.reverse);
  const float *const Y = ys.const_data_ptr<float>(), *const H0 = starts.const_data_ptr<float>(),
                     *const K = keeps.const_data_ptr<float>(),
                     *const C0 = memory ? memories.const_data_ptr<float>() : nullptr,
                     *const dY = grads.y ? dys.const_data_ptr<float>() : nullptr,
                     *const M = call.mask ? mask.const_data_ptr<float>() : nullptr;
  float *const dH = dh.mutable_data_ptr<float>(), *const dC = dc.mutable_data_ptr<float>(),
               *const dU = d_output.mutable_data_ptr<float>(),
               *const dP = projected.mutable_data_ptr<float>(), *const dZ = dz.mutable_data_ptr<float>(),
               *const before_rows = before.mutable_data_ptr<float>(),
               *const dR = own_dr ? dr.mutable_data_ptr<float>() : dZ,
               *const through_rows = call.mask ? through.mutable_data_ptr<float>() : nullptr;
  at::parallel_for(0, N, std::max<int64_t>(1, at::internal::GRAIN_SIZE / state_width),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t row = begin; row < end; ++row) {
                       const int64_t source = from[static_cast<size_t>(row)];
                       std::memcpy(before_rows + row * state_width,
                                   source < N ? Y + source * state_width : H0 + (source - N) * state_width,
                                   static_cast<size_t>(state_width) * sizeof(float));
                     }
                   });
  const auto& kernels = kernels::cpu::active();
  const Split split(steps, maps, n);
  engine::Team::run(split.threads(), [&](const engine::Team::Member& member) {
    for (int64_t i = 0; i < steps.count(); ++i) {
      const auto t = static_cast<size_t>(steps.at(i, !call.reverse));
      const int64_t first = steps.first[t];
      const Split::Part part = split.part(member, steps.sizes[t]);
      // What reaches y is added to what reaches h from behind it.
      const auto reach = [&](int64_t row, int64_t component) {
        const int64_t at = row * state_width + component * q, place = first * state_width + at;
        if (dY)
          for (int64_t unit = 0; unit < q; ++unit) dH[at + unit] += dY[place + unit];
      };
      if (maps.projection) {
        for_each_cell(part.cells, n, q, 1, [&](int64_t row, int64_t component) {
          reach(row, component);
          float* const from_h = dH + row * state_width + component * q;
          std::copy_n(from_h, q, dP + (first + row) * state_width + component * q);
          std::fill_n(from_h, q, 0.0f);
        });
        split.wait(member);
        maps.projection->apply_transposed(part.rows, split.share(member, maps.projection->blocks()),
                                          dP + first * state_width, dU, nullptr, nullptr);
        split.wait(member);
      }
      for_each_cell(part.cells, n, p, 16 * all, [&](int64_t row, int64_t component) {
        if (!maps.projection) reach(row, component);
        const int64_t at = row * width + component * p, place = first * width + at,
                      source = from[static_cast<size_t>(first + row)];
        const auto kept_at = [&](int64_t number) { return K + (number * n + component) * values * p; };
        const float* c_before = nullptr;
        if (memory)
          c_before = source < N ? kept_at(source) + 4 * p : C0 + (source - N) * width + component * p;
        kernels.cell_step_back(cell_of(call.cell), {.units = p,
                                                    .kept = kept_at(first + row),
                                                    .c_before = c_before,
                                                    .h_before = own_dr ? before_rows + place : nullptr,
                                                    .dh = dU + at,
                                                    .dc = memory ? dC + at : nullptr,
                                                    .dz = dZ + place * all,
                                                    .dr = own_dr ? dR + place * all : nullptr});
      });
      split.wait(member);
      maps.gates.apply_transposed(part.rows, part.blocks, dR + first * width * all, dH, M, through_rows);
      split.wait(member);
    }
  });
  if (M)
    for (size_t t = 0; t < steps.sizes.size(); ++t) {
      float* const rows = before_rows + steps.first[t] * state_width;
      multiply(rows, M, steps.sizes[t] * state_width, rows);
    }
  return {dz, dr, dh, dc, before, projected};
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("recurrence_backward", &recurrence_backward_schema<&recurrence_backward_cpu>);
}

}  // namespace quatrain::ops
