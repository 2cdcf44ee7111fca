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
    memory.begin((pass_.rank * (a_all + b_all) + kPixels * a_.channels) * 4 + 3 * 64);
    float* const a_mixed = memory.take<float>(pass_.rank * a_all);
    float* const b_mixed = memory.take<float>(pass_.rank * b_all);
    float* const patch = memory.take<float>(kPixels * a_.channels);
    std::vector<float*> a_to, b_to;
    for (int64_t r = 0; r < pass_.rank; ++r) {
      a_to.push_back(a_mixed + r * a_all);
      b_to.push_back(b_mixed + r * b_all);
    }
    const auto n = static_cast<int32_t>(plane_.n);
    const float *from_b[engine::kMaxComponents], *from_a[engine::kMaxComponents];
    for (int64_t c = 0; c < plane_.n; ++c) from_a[c] = patch + c * plane_.a_units;
    const int64_t pixels = plane_.batch * b_.height * b_.width, rows = plane_.b_in_group(),
                  cols = plane_.a_in_group();
    for (int64_t first = 0; first < pixels; first += kPixels) {
      const int64_t count = std::min(kPixels, pixels - first);
      for (int64_t c = 0; c < plane_.n; ++c) from_b[c] = b_.data + first * b_.channels + c * plane_.b_units;
      k_.transpose_f_f(pass_.b_in->view(), n, from_b, b_.channels, b_to.data(), b_row, count, plane_.b_units);
      for (int64_t place = begin; place < end; ++place) {
        collect(place, first, count, patch);
        k_.combine_f_f(pass_.a_in->view(), from_a, a_.channels, a_to.data(), plane_.a_units, count,
                       plane_.a_units, nullptr, Store::set);
        for (int64_t group = 0; group < plane_.groups; ++group)
          for (int64_t r = 0; r < pass_.rank; ++r)
            at::native::cpublas::brgemm(rows, cols, count, b_row, plane_.a_units, cols, first > 0,
                                        b_mixed + r * b_all + group * rows * b_row,
                                        a_mixed + r * a_all + group * cols, sum_of(place, group, r));
      }
    }
  }

  /// The pixels of a that a place brings to pixels of b; zeros off the image.
  void collect(int64_t place, int64_t first, int64_t count, float* patch) const {
    const int64_t u = place / plane_.width * plane_.dilation[0] - plane_.padding[0],
                  v = place % plane_.width * plane_.dilation[1] - plane_.padding[1];
    for (int64_t i = 0; i < count; ++i, patch += a_.channels) {
      const int64_t pixel = first + i, row = pixel / b_.width, y = row % b_.height * plane_.stride[0] + u,
                    x = pixel % b_.width * plane_.stride[1] + v;
      if (y < 0 || y >= a_.height || x < 0 || x >= a_.width)
        std::fill_n(patch, a_.channels, 0.f);
      else
        std::copy_n(a_.pixel(row / b_.height, y, x), a_.channels, patch);
    }
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
