// The gradient of a plane's weights without transforms. For each row of the kernel's places, b's mixtures of
// a panel of pixels times those of the pixels of a that meet them, which lie side by side for neighbouring
// places (direct_rows.h); summed over all panels.
//
//   a  mixed once for all places                          [r][pixel][unit]
//   b  mixed                                              [r][unit][pixel]
//
// Each thread has some of the R products of some rows of places, so that each sum has one thread and one
// order.

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "ops/convolution/direct_rows.h"
#include "ops/engine/scratch.h"
#include "ops/engine/threads.h"
#include "ops/memory/recycled.h"

namespace quatrain::ops::plane {

namespace direct {
namespace {

using kernels::cpu::Store;

/// Of pixels: the products of shorter rows would be small, so that those of a panel are copied into one.
constexpr int64_t kShortProduct = 16;

class WeightTask {
 public:
  /// What all threads share.
  struct Work {
    const Plane& plane;
    const WeightPass& pass;
    const View& view;
    const Panels& panels;
    const Images &a, &b;
    int64_t side;  ///< neighbouring places of a row of the kernel that are one product
    float* sums;   ///< [row of places][group][r][unit of b][place][unit of a]

    int64_t rows_of_places() const { return plane.places() / side; }
    int64_t block() const { return plane.b_in_group() * side * plane.a_in_group(); }
    float* sum(int64_t row, int64_t group, int64_t r) const {
      return sums + ((row * plane.groups + group) * pass.rank + r) * block();
    }
  };

  /// Products begin .. end of all: product r of row p of places is number r * rows_of_places + p.
  WeightTask(const Work& work, int64_t begin, int64_t end)
      : w_(work),
        begin_(begin),
        end_(end),
        first_r_(begin / work.rows_of_places()),
        rank_((end - 1) / work.rows_of_places() + 1 - first_r_),
        a_in_(some(*work.pass.a_in)),
        b_in_(some(*work.pass.b_in)),
        mixed_(work.view, work.panels, a_in_, rank_, work.plane.n, work.a),
        copies_(work.panels.width < kShortProduct),
        begun_(static_cast<size_t>((end - begin) * work.plane.groups)) {
    const int64_t pixels = w_.panels.height * w_.panels.width,
                  copied = copies_ ? pixels * w_.side * w_.plane.a_in_group() : 0;
    b_row_ = (pixels + 15) / 16 * 16 + kSkew;
    b_all_ = w_.plane.b_units * b_row_ + kSkew;
    engine::Scratch& memory = engine::scratch();
    memory.begin((mixed_.size() + rank_ * b_all_ + copied) * 4 + 4 * 64);
    a_mixed_ = memory.take<float>(mixed_.size());
    b_mixed_ = memory.take<float>(rank_ * b_all_);
    copied_ = memory.take<float>(copied);
  }

  void run() {
    for (int64_t i = 0; i < w_.panels.count; ++i) {
      panel_ = w_.panels[i];
      mixed_.read(panel_, a_mixed_);
      mix_b();
      for (int64_t product = begin_; product < end_; ++product)
        for (int64_t group = 0; group < w_.plane.groups; ++group) multiply(product, group);
    }
    for (int64_t product = begin_; product < end_; ++product)
      for (int64_t group = 0; group < w_.plane.groups; ++group)
        if (!begun(product, group)) std::fill_n(sum(product, group), w_.block(), 0.f);
  }

 private:
  /// The mixtures of this task's products.
  engine::Mixing some(const engine::Mixing& all) const {
    std::vector<int32_t> outputs(static_cast<size_t>(rank_));
    std::iota(outputs.begin(), outputs.end(), static_cast<int32_t>(first_r_));
    return all.some(outputs, /*alone=*/true);  // threads share the outputs
  }
  char& begun(int64_t product, int64_t group) {
    return begun_[static_cast<size_t>((product - begin_) * w_.plane.groups + group)];
  }
  float* sum(int64_t product, int64_t group) const {
    return w_.sum(product % w_.rows_of_places(), group, product / w_.rows_of_places());
  }

  void mix_b() {
    const int64_t units = w_.plane.b_units;
    const bool whole = panel_.width() == w_.b.width;  // rows of pixels are one
    std::vector<float*> to(static_cast<size_t>(rank_));
    const float* from[engine::kMaxComponents];
    for (int64_t row = 0, rows; row < panel_.rows(); row += rows) {
      const int64_t slice = (panel_.first + row) / w_.view.height, y = (panel_.first + row) % w_.view.height;
      rows = whole ? std::min(w_.view.height - y, panel_.rows() - row) : 1;
      for (int64_t r = 0; r < rank_; ++r)
        to[static_cast<size_t>(r)] = b_mixed_ + r * b_all_ + row * panel_.width();
      for (int64_t c = 0; c < w_.plane.n; ++c)
        from[c] = w_.b.last ? w_.b.pixel(slice, y, panel_.left) + c * units
                            : w_.b.row(slice, c * units, y) + panel_.left;
      const int64_t pixels = rows * panel_.width();
      if (w_.b.last)
        k_.transpose_f_f(b_in_.view(), static_cast<int32_t>(w_.plane.n), from, w_.b.channels, to.data(),
                         b_row_, pixels, units);
      else
        k_.combine_f_f(b_in_.view(), from, w_.b.channel(), to.data(), b_row_, units, pixels, nullptr,
                       Store::set);
    }
  }

  /// A product of this panel, added to those of the panels before it.
  void multiply(int64_t product, int64_t group) {
    const Axis& across = w_.view.across;
    const int64_t row_of_places = product % w_.rows_of_places(), r = product / w_.rows_of_places() - first_r_,
                  in_row = w_.plane.kernel[kAcross] / w_.side, v = row_of_places % in_row,
                  u = row_of_places / in_row % w_.plane.kernel[kDown],
                  plane = row_of_places / in_row / w_.plane.kernel[kDown];
    const int64_t q = w_.plane.a_in_group(), cols = w_.side * q, step = across.stride * w_.plane.a_units,
                  below = u * w_.view.down.phases[0].next, width = panel_.width();
    const auto pixels_of_a = [&](int64_t row) {
      return mixed_.at(r, row, plane, u, below, v * across.phases[0].next) + group * q;
    };
    const auto add = [&](int64_t row, int64_t pixels, const float* a, int64_t step_of_a) {
      const int64_t units = w_.plane.b_in_group();
      at::native::cpublas::brgemm(units, cols, pixels, b_row_, step_of_a, cols, begun(product, group) != 0,
                                  b_mixed_ + r * b_all_ + group * units * b_row_ + row * width, a,
                                  sum(product, group));
      begun(product, group) = 1;
    };
    for (int64_t row = 0; row < panel_.rows(); ++row) {
      const bool met = mixed_.meets(row, plane) && mixed_.on_image(row, below);
      if (!copies_) {
        if (met) add(row, width, pixels_of_a(row), step);
        continue;
      }
      float* const to = copied_ + row * width * cols;
      if (!met) std::fill_n(to, width * cols, 0.f);
      for (int64_t x = 0; met && x < width; ++x)
        std::copy_n(pixels_of_a(row) + x * step, cols, to + x * cols);
    }
    if (copies_) add(0, panel_.rows() * width, copied_, cols);
  }

  const Work w_;
  const int64_t begin_, end_, first_r_, rank_;
  const engine::Mixing a_in_, b_in_;
  MixedRows mixed_;
  const bool copies_;
  std::vector<char> begun_;
  const kernels::cpu::Table& k_ = kernels::cpu::active();
  int64_t b_row_, b_all_;
  float *a_mixed_, *b_mixed_, *copied_;
  Panel panel_{};
};

/// Of one unit of b, all components and places: dF (results, units of b, units of a in a group, places).
void finish(const WeightTask::Work& w, int64_t unit, float* dF) {
  const kernels::cpu::Table& k = kernels::cpu::active();
  const int64_t rows = w.plane.b_in_group(), cols = w.plane.a_in_group(), group = unit / rows,
                row = unit % rows, places = w.plane.places();
  std::vector<float> mixed(static_cast<size_t>(w.pass.results * places * cols));
  std::vector<const float*> from(static_cast<size_t>(w.pass.rank));
  std::vector<float*> to(static_cast<size_t>(w.pass.results));
  for (int64_t place = 0; place < places; ++place) {
    for (int64_t r = 0; r < w.pass.rank; ++r)
      from[static_cast<size_t>(r)] = w.sum(place / w.side, group, r) + (row * w.side + place % w.side) * cols;
    for (int64_t i = 0; i < w.pass.results; ++i)
      to[static_cast<size_t>(i)] = mixed.data() + (i * places + place) * cols;
    k.combine_f_f(w.pass.out ? w.pass.out->view() : engine::copies_of(w.pass.rank), from.data(), cols,
                  to.data(), cols, 1, cols, nullptr, Store::set);
  }
  for (int64_t i = 0; i < w.pass.results; ++i) {
    const float* plain = mixed.data() + i * places * cols;
    float* target = dF + (i * w.plane.b_units + unit) * cols * places;
    k.transpose_f_f(engine::copies_of(1), 1, &plain, cols, &target, places, places, cols);
  }
}

}  // namespace
}  // namespace direct

void run_direct_weights(const Plane& plane, const WeightPass& pass, const Images& a, const Images& b,
                        float* dF) {
  const Direction way{true, pass.a_in, nullptr, nullptr, pass.rank};
  const direct::View view(plane, way, a, b);
  const direct::Panels panels(plane, view, pass.rank, plane.a_units, 1);
  const int64_t side = direct::neighbours(plane, view.across.phases[0]);
  const at::Tensor sums =
      recycled_empty({pass.rank * plane.groups * plane.places() * plane.b_in_group() * plane.a_in_group()});
  const direct::WeightTask::Work work{plane, pass, view, panels, a, b, side, sums.mutable_data_ptr<float>()};
  const int64_t products = pass.rank * work.rows_of_places(), threads = threads_at_hand();
  at::parallel_for(0, products, (products + threads - 1) / threads,
                   [&](int64_t begin, int64_t end) { direct::WeightTask(work, begin, end).run(); });
  at::parallel_for(0, plane.b_units, 1, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) direct::finish(work, unit, dF);
  });
}

}  // namespace quatrain::ops::plane
