// The way back of a recurrence on a CPU in float32.

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

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
  if (y.scalar_type() != at::kFloat || N == 0 || call.projects()) return compose();
  const Steps steps(call.batch_sizes, N, B);
  const GateMaps maps(call, B, steps.count(), BilinearMap::Pass::backward);
  if (!maps.on_engine()) return compose();
  const int64_t n = call.n(), p = call.p(), width = n * p, all = gates(call.cell),
                values = kept_values(call.cell);
  const bool memory = has_memory(call.cell), own_dr = call.cell == Cell::gru;
  const auto start = [&](const Optional& grad, const at::Tensor& like) {
    return grad ? at::empty(like.sizes(), like.options()).copy_(*grad)
                : at::zeros(like.sizes(), like.options());
  };
  const at::Tensor dh = start(grads.h, h0),
                   dc = memory ? start(grads.c, h0) : at::empty({0, width}, h0.options()),
                   dz = at::empty({N, all * width}, y.options()),
                   dr = at::empty({own_dr ? N : 0, all * width}, y.options()),
                   before = at::empty({N, width}, y.options()), ys = y.contiguous(), starts = h0.contiguous(),
                   memories = memory ? c0->contiguous() : at::Tensor(), keeps = kept.contiguous();
  at::Tensor dys, through, mask;
  if (grads.y) dys = grads.y->contiguous();
  if (call.mask) through = at::empty({B, width}, y.options()), mask = call.mask->contiguous();
  const std::vector<int64_t> from = steps.before(call.reverse);
  const float *const Y = ys.const_data_ptr<float>(), *const H0 = starts.const_data_ptr<float>(),
                     *const K = keeps.const_data_ptr<float>(),
                     *const C0 = memory ? memories.const_data_ptr<float>() : nullptr,
                     *const dY = grads.y ? dys.const_data_ptr<float>() : nullptr,
                     *const M = call.mask ? mask.const_data_ptr<float>() : nullptr;
  float *const dH = dh.mutable_data_ptr<float>(), *const dC = dc.mutable_data_ptr<float>(),
               *const dZ = dz.mutable_data_ptr<float>(),
               *const before_rows = before.mutable_data_ptr<float>(),
               *const dR = own_dr ? dr.mutable_data_ptr<float>() : dZ,
               *const through_rows = call.mask ? through.mutable_data_ptr<float>() : nullptr;
  at::parallel_for(
      0, N, std::max<int64_t>(1, at::internal::GRAIN_SIZE / width), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t source = from[static_cast<size_t>(row)];
          std::memcpy(before_rows + row * width, source < N ? Y + source * width : H0 + (source - N) * width,
                      static_cast<size_t>(width) * sizeof(float));
        }
      });
  const auto& kernels = kernels::cpu::active();
  const Split split(steps, maps, n);
  engine::Team::run(split.threads(), [&](const engine::Team::Member& member) {
    for (int64_t i = 0; i < steps.count(); ++i) {
      const auto t = static_cast<size_t>(steps.at(i, !call.reverse));
      const int64_t first = steps.first[t];
      const Split::Part part = split.part(member, steps.sizes[t]);
      for_each_cell(part.cells, n, p, 16 * all, [&](int64_t row, int64_t component) {
        const int64_t at = row * width + component * p, place = first * width + at,
                      source = from[static_cast<size_t>(first + row)];
        float* const of_h = dH + at;
        if (dY)
          for (int64_t q = 0; q < p; ++q) of_h[q] += dY[place + q];
        const auto kept_at = [&](int64_t number) { return K + (number * n + component) * values * p; };
        const float* c_before = nullptr;
        if (memory)
          c_before = source < N ? kept_at(source) + 4 * p : C0 + (source - N) * width + component * p;
        kernels.cell_step_back(cell_of(call.cell), {.units = p,
                                                    .kept = kept_at(first + row),
                                                    .c_before = c_before,
                                                    .h_before = before_rows + place,
                                                    .dh = of_h,
                                                    .dc = memory ? dC + at : nullptr,
                                                    .dz = dZ + place * all,
                                                    .dr = own_dr ? dR + place * all : nullptr});
      });
      split.wait(member);
      maps.apply_transposed(part.rows, part.blocks, dR + first * width * all, dH, M, through_rows);
      split.wait(member);
    }
  });
  if (M)
    for (size_t t = 0; t < steps.sizes.size(); ++t) {
      float* const rows = before_rows + steps.first[t] * width;
      multiply(rows, M, steps.sizes[t] * width, rows);
    }
  return {dz, dr, dh, dc, before, at::empty({0, width}, y.options())};
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("recurrence_backward", &recurrence_backward_schema<&recurrence_backward_cpu>);
}

}  // namespace quatrain::ops
