// A recurrence on a CPU in float32, step by step on maps that are resolved once.

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>

#include "kernels/cpu/kernels.h"
#include "ops/map/bilinear_map.h"
#include "ops/recurrent/schema.h"

namespace quatrain::ops {

namespace {

using engine::Blocks;
using kernels::cpu::CellStep;
using kernels::cpu::CellStepBack;

// Of the same order.
kernels::cpu::Cell cell_of(Cell cell) {
  static_assert(static_cast<int>(Cell::rnn_relu) == static_cast<int>(kernels::cpu::Cell::rnn_relu));
  return static_cast<kernels::cpu::Cell>(cell);
}

// The maps of the state, and where their rows lie among the gates.
class StateMaps {
 public:
  StateMaps(const RecurrenceCall& call, int64_t rows, int64_t steps, BilinearMap::Pass pass)
      : n_(call.n()), p_(call.p()), gates_(gates(call.cell)) {
    for (size_t k = 0; k < call.S.size(); ++k) {
      maps_.emplace_back(call.S[k], call.maps[k], rows, at::kFloat, pass);
      on_engine_ = on_engine_ && maps_.back().on_engine();
    }
    if (!on_engine_) return;
    // The factored way mixes its weights in each application, which is as good for a single one.
    for (BilinearMap& map : maps_)
      if (steps > 1 || call.maps[0].constant || map.way() != Way::factored)
        map.prepare(pass == BilinearMap::Pass::backward);
  }

  bool on_engine() const { return on_engine_; }

  // Rows of gates become H h, plus the bias.
  void apply(int64_t rows, const float* h, float* r, const float* bias) const {
    const engine::Piece from{Blocks{const_cast<float*>(h), p_, n_ * p_}, p_};
    for (size_t k = 0; k < maps_.size(); ++k) {
      BilinearMap::Output output;
      // A bias lies as its gates do, which a map of one gate does not reach: its rows are n p values.
      if (maps_.size() == 1) output.epilogue.bias = bias;
      maps_[k].apply(rows, {&from, 1}, gates_at(r, k), output);
    }
    if (!bias || maps_.size() == 1) return;
    const int64_t width = n_ * gates_ * p_;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t i = 0; i < width; ++i) r[row * width + i] += bias[i];
  }

  // H^T of rows of gates is added to dh.
  void apply_transposed(int64_t rows, float* dr, float* dh) const {
    for (size_t k = 0; k < maps_.size(); ++k)
      maps_[k].apply_transposed(rows, gates_at(dr, k), Blocks{dh, p_, n_ * p_}, true);
  }

 private:
  Blocks gates_at(float* rows, size_t k) const {
    return {rows + static_cast<int64_t>(k) * p_, gates_ * p_, n_ * gates_ * p_};
  }

  int64_t n_, p_, gates_;
  std::vector<BilinearMap> maps_;
  bool on_engine_ = true;
};

// Calls `each(row, component)`; a unit costs about as much as `work` additions.
template <class Each>
void for_each_component(int64_t rows, int64_t n, int64_t p, int64_t work, const Each& each) {
  const int64_t grain = std::max<int64_t>(1, at::internal::GRAIN_SIZE / (work * p + 1));
  at::parallel_for(0, rows * n, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) each(i / n, i % n);
  });
}

void multiply(const float* a, const float* b, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = a[i] * b[i];
}

States recurrence_cpu(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0,
                      const Optional& c0, bool keep) {
  const auto compose = [&] { return composed::recurrence(call, z, h0, c0, keep); };
  if (z.scalar_type() != at::kFloat) return compose();
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
  if (call.mask) masked = at::empty_like(h), mask = call.mask->contiguous();
  if (call.bias) bias = call.bias->contiguous();
  const auto* const from = x.const_data_ptr<float>();
  float *const H = h.mutable_data_ptr<float>(), *const C = c.mutable_data_ptr<float>(),
               *const R = r.mutable_data_ptr<float>(), *const Y = y.mutable_data_ptr<float>(),
               *const K = kept.mutable_data_ptr<float>();
  const auto& kernels = kernels::cpu::active();
  for (int64_t i = 0; i < steps.count(); ++i) {
    const auto t = static_cast<size_t>(steps.at(i, call.reverse));
    const int64_t rows = steps.sizes[t], first = steps.first[t];
    const float* state = H;
    if (call.mask) {
      multiply(H, mask.const_data_ptr<float>(), rows * width, masked.mutable_data_ptr<float>());
      state = masked.const_data_ptr<float>();
    }
    maps.apply(rows, state, R, call.bias ? bias.const_data_ptr<float>() : nullptr);
    for_each_component(rows, n, p, 32 * all, [&](int64_t row, int64_t component) {
      const int64_t at = row * width + component * p;
      kernels.cell_step(
          cell_of(call.cell),
          {.units = p,
           .z = from + (first * width + at) * all,
           .z_gate = p,
           .r = R + at * all,
           .r_gate = p,
           .c = memory ? C + at : nullptr,
           .h = H + at,
           .kept = keep ? K + (first + row) * kept_width + component * (kept_width / n) : nullptr});
    });
    std::memcpy(Y + first * width, H, static_cast<size_t>(rows * width) * sizeof(float));
  }
  return {y, h, c, kept};
}

StateGradients recurrence_backward_cpu(const RecurrenceCall& call, const Upstream& grads, const at::Tensor& y,
                                       const at::Tensor& kept, const at::Tensor& h0, const Optional& c0) {
  const auto compose = [&] { return composed::recurrence_backward(call, grads, y, kept, h0, c0); };
  check_recurrence_backward(call, grads, y, kept, h0, c0);
  const int64_t N = y.size(0), B = h0.size(0);
  if (y.scalar_type() != at::kFloat || N == 0) return compose();
  const Steps steps(call.batch_sizes, N, B);
  const StateMaps maps(call, B, steps.count(), BilinearMap::Pass::backward);
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
                     *const dY = grads.y ? dys.const_data_ptr<float>() : nullptr;
  float *const dH = dh.mutable_data_ptr<float>(), *const dC = dc.mutable_data_ptr<float>(),
               *const dZ = dz.mutable_data_ptr<float>(),
               *const before_rows = before.mutable_data_ptr<float>(),
               *const dR = own_dr ? dr.mutable_data_ptr<float>() : dZ;
  for (int64_t row = 0; row < N; ++row) {
    const int64_t source = from[static_cast<size_t>(row)];
    std::memcpy(before_rows + row * width, source < N ? Y + source * width : H0 + (source - N) * width,
                static_cast<size_t>(width) * sizeof(float));
  }
  const auto& kernels = kernels::cpu::active();
  for (int64_t i = 0; i < steps.count(); ++i) {
    const auto t = static_cast<size_t>(steps.at(i, !call.reverse));
    const int64_t rows = steps.sizes[t], first = steps.first[t];
    for_each_component(rows, n, p, 16 * all, [&](int64_t row, int64_t component) {
      const int64_t at = row * width + component * p, place = first * width + at,
                    source = from[static_cast<size_t>(first + row)];
      float* const of_h = dH + at;
      if (dY)
        for (int64_t q = 0; q < p; ++q) of_h[q] += dY[place + q];
      const auto kept_at = [&](int64_t number) { return K + (number * n + component) * values * p; };
      const float* c_before = nullptr;
      if (memory) c_before = source < N ? kept_at(source) + 4 * p : C0 + (source - N) * width + component * p;
      kernels.cell_step_back(cell_of(call.cell), {.units = p,
                                                  .kept = kept_at(first + row),
                                                  .c_before = c_before,
                                                  .h_before = before_rows + place,
                                                  .dh = of_h,
                                                  .dc = memory ? dC + at : nullptr,
                                                  .dz = dZ + place * all,
                                                  .dr = own_dr ? dR + place * all : nullptr});
    });
    float* const gates_of_step = dR + first * width * all;
    if (!call.mask) {
      maps.apply_transposed(rows, gates_of_step, dH);
      continue;
    }
    float* const to = through.mutable_data_ptr<float>();
    const float* const m = mask.const_data_ptr<float>();
    std::fill_n(to, rows * width, 0.0f);
    maps.apply_transposed(rows, gates_of_step, to);
    for (int64_t q = 0; q < rows * width; ++q) dH[q] += to[q] * m[q];
  }
  if (call.mask)
    for (size_t t = 0; t < steps.sizes.size(); ++t) {
      float* const rows = before_rows + steps.first[t] * width;
      multiply(rows, mask.const_data_ptr<float>(), steps.sizes[t] * width, rows);
    }
  return {dz, dr, dh, dc, before};
}

}  // namespace

TORCH_LIBRARY_IMPL(quatrain, CPU, m) {
  m.impl("recurrence", &recurrence_schema<&recurrence_cpu>);
  m.impl("recurrence_backward", &recurrence_backward_schema<&recurrence_backward_cpu>);
}

}  // namespace quatrain::ops
