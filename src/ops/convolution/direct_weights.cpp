// The gradient of a plane's weights without transforms: at each place of the kernel, b's mixtures times those
// of the pixels of a that meet them, summed over panels of pixels. Threads share the places, so that each sum
// has one thread and one order.

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "ops/convolution/plane.h"
#include "ops/engine/scratch.h"
#include "ops/memory/recycled.h"

namespace quatrain::ops::plane {

namespace direct_weights {
namespace {

using kernels::cpu::Store;

constexpr int64_t kPixels = 128;  // of a panel: the length of the products' sums
constexpr int64_t kSkew = 16;

class Work {
 public:
  Work(const Plane& plane, const WeightPass& pass, const Images& a, const Images& b, float* dF)
      : plane_(plane), pass_(pass), a_(a), b_(b), dF_(dF), block_(plane.b_in_group() * plane.a_in_group()) {
    sums_ = recycled_empty({plane.places() * plane.groups * pass.rank * block_});
  }

  void run() const {
    const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads(), places = plane_.places();
    at::parallel_for(0, places, (places + threads - 1) / threads,
                     [&](int64_t begin, int64_t end) { sum(begin, end); });
    at::parallel_for(0, plane_.b_units, 1, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) finish(unit);
    });
  }

 private:
  float* sum_of(int64_t place, int64_t group, int64_t r) const {
    return sums_.mutable_data_ptr<float>() + ((place * plane_.groups + group) * pass_.rank + r) * block_;
  }

  /// The sums of some places over all pixels.
  void sum(int64_t begin, int64_t end) const {
    const int64_t b_row = kPixels + kSkew, a_all = kPixels * plane_.a_units + kSkew,
                  b_all = plane_.b_units * b_row + kSkew;
    engine::Scratch& memory = engine::scratch();
    memory.begin((pass_.rank * (a_all + b_all) + (a_.last ? 0 : strided())) * 4 + 3 * 64);
    Panel panel{
        memory.take<float>(pass_.rank * a_all),      a_all,
        memory.take<float>(pass_.rank * b_all),      b_all,
        memory.take<float>(a_.last ? 0 : strided()), std::vector<float*>(static_cast<size_t>(pass_.rank))};
    const int64_t pixels = plane_.batch * b_.depth * b_.plane(), rows = plane_.b_in_group(),
                  cols = plane_.a_in_group();
    for (int64_t first = 0; first < pixels; first += kPixels) {
      const int64_t count = std::min(kPixels, pixels - first);
      each_run(first, count, b_.plane(), [&](const Run& run) { mix_b(run, panel); });
      for (int64_t place = begin; place < end; ++place) {
        each_run(first, count, b_.width, [&](const Run& run) { mix_a(place, run, panel); });
        for (int64_t group = 0; group < plane_.groups; ++group)
          for (int64_t r = 0; r < pass_.rank; ++r)
            at::native::cpublas::brgemm(rows, cols, count, b_row, plane_.a_units, cols, first > 0,
                                        panel.b + r * b_all + group * rows * b_row,
                                        panel.a + r * a_all + group * cols, sum_of(place, group, r));
      }
    }
  }

  /// A panel's mixtures: those of a [r][pixel][unit], of b [r][unit][pixel].
  struct Panel {
    float* a;
    int64_t a_all;
    float* b;
    int64_t b_all;
    float* strided;
    std::vector<float*> to;  // of R mixtures
  };
  /// Pixels of b that lie side by side: those from `pixel` on of all, from `at` on of the panel.
  struct Run {
    int64_t pixel, count, at;
  };
  template <class Use>
  static void each_run(int64_t first, int64_t count, int64_t length, const Use& use) {
    for (int64_t i = 0; i < count;) {
      const int64_t here = std::min(count - i, length - (first + i) % length);
      use(Run{first + i, here, i});
      i += here;
    }
  }

  void mix_b(const Run& run, Panel& panel) const {
    const int64_t slice = run.pixel / b_.plane(), within = run.pixel % b_.plane();
    const float* from[engine::kMaxComponents];
    std::vector<float*>& to = panel.to;
    for (int64_t r = 0; r < pass_.rank; ++r) to[static_cast<size_t>(r)] = panel.b + r * panel.b_all + run.at;
    const int64_t units = plane_.b_units, row = kPixels + kSkew;
    for (int64_t c = 0; c < plane_.n; ++c)
      from[c] = b_.last ? b_.pixel(slice, 0, within) + c * units : b_.row(slice, c * units, 0) + within;
    if (b_.last)
      k_.transpose_f_f(pass_.b_in->view(), static_cast<int32_t>(plane_.n), from, b_.channels, to.data(), row,
                       run.count, units);
    else
      k_.combine_f_f(pass_.b_in->view(), from, b_.channel(), to.data(), row, units, run.count, nullptr,
                     Store::set);
  }

  /// The pixels of a that a place brings to pixels of a row of b; zeros off the image.
  void mix_a(int64_t place, const Run& run, Panel& panel) const {
    const int64_t* const size = plane_.kernel;
    const int64_t u = place / size[kAcross] % size[kDown], w = place / size[kAcross] / size[kDown],
                  v = place % size[kAcross];
    const auto met = [&](int64_t of_b, int64_t at, AxisName axis) {
      return of_b * plane_.stride[axis] + at * plane_.dilation[axis] - plane_.padding[axis];
    };
    const int64_t row = run.pixel / b_.width, slice = row / b_.height, z = met(slice % b_.depth, w, kDeep),
                  y = met(row % b_.height, u, kDown), x = met(run.pixel % b_.width, v, kAcross),
                  step = plane_.stride[kAcross], units = plane_.a_units;
    const bool inside = z >= 0 && z < a_.depth && y >= 0 && y < a_.height;
    const int64_t before = std::clamp<int64_t>((step - 1 - x) / step, 0, run.count),
                  end = inside ? std::clamp<int64_t>((a_.width - x + step - 1) / step, before, run.count)
                               : before,
                  count = end - before;
    std::vector<float*>& to = panel.to;
    for (int64_t r = 0; r < pass_.rank; ++r) {
      float* const pixels = panel.a + r * panel.a_all + run.at * units;
      std::fill_n(pixels, before * units, 0.f);
      std::fill_n(pixels + end * units, (run.count - end) * units, 0.f);
      to[static_cast<size_t>(r)] = pixels + before * units;
    }
    if (count == 0) return;
    const int64_t from_slice = slice / b_.depth * a_.depth + z, from_x = x + before * step;
    const float* from[engine::kMaxComponents];
    if (a_.last) {
      for (int64_t c = 0; c < plane_.n; ++c) from[c] = a_.pixel(from_slice, y, from_x) + c * units;
    } else {
      for (int64_t c = 0; c < plane_.n; ++c) from[c] = a_.row(from_slice, c * units, y) + from_x;
      if (step == 1)
        return k_.transpose_f_f(pass_.a_in->view(), static_cast<int32_t>(plane_.n), from, a_.channel(),
                                to.data(), units, units, count);
      k_.transpose_f_f(engine::copies_of(1), 1, from, a_.channel(), &panel.strided, a_.channels, a_.channels,
                       (count - 1) * step + 1);
      for (int64_t c = 0; c < plane_.n; ++c) from[c] = panel.strided + c * units;
    }
    k_.combine_f_f(pass_.a_in->view(), from, step * a_.channels, to.data(), units, count, units, nullptr,
                   Store::set);
  }
  /// Values of a's pixels between the first and the last that a panel's row meets.
  int64_t strided() const {
    const int64_t count = std::min(kPixels, b_.width), step = plane_.stride[kAcross];
    return step == 1 ? 0 : ((count - 1) * step + 1) * a_.channels;
  }

  /// Of one unit of b, all components and places: dF (results, units of b, units of a in a group, places).
  void finish(int64_t unit) const {
    const int64_t rows = plane_.b_in_group(), cols = plane_.a_in_group(), group = unit / rows,
                  row = unit % rows, places = plane_.places();
    std::vector<float> mixed(static_cast<size_t>(pass_.results * places * cols));
    std::vector<const float*> from(static_cast<size_t>(pass_.rank));
    std::vector<float*> to(static_cast<size_t>(pass_.results));
    for (int64_t place = 0; place < places; ++place) {
      for (int64_t r = 0; r < pass_.rank; ++r)
        from[static_cast<size_t>(r)] = sum_of(place, group, r) + row * cols;
      for (int64_t i = 0; i < pass_.results; ++i)
        to[static_cast<size_t>(i)] = mixed.data() + (i * places + place) * cols;
      k_.combine_f_f(pass_.out ? pass_.out->view() : engine::copies_of(pass_.rank), from.data(), cols,
                     to.data(), cols, 1, cols, nullptr, Store::set);
    }
    for (int64_t i = 0; i < pass_.results; ++i) {
      const float* plain = mixed.data() + i * places * cols;
      float* target = dF_ + (i * plane_.b_units + unit) * cols * places;
      k_.transpose_f_f(engine::copies_of(1), 1, &plain, cols, &target, places, places, cols);
    }
  }

  const Plane& plane_;
  const WeightPass& pass_;
  const Images a_, b_;
  float* const dF_;
  const int64_t block_;
  const kernels::cpu::Table& k_ = kernels::cpu::active();
  at::Tensor sums_;
};

}  // namespace
}  // namespace direct_weights

void run_direct_weights(const Plane& plane, const WeightPass& pass, const Images& a, const Images& b,
                        float* dF) {
  direct_weights::Work(plane, pass, a, b, dF).run();
}

}  // namespace quatrain::ops::plane
