// The gradient of a plane's weights by Winograd's F(m x m, 3 x 3). Threads go together through panels of
// tiles:
//
//   transforms  the tiles of a, t x t pixels each, and those of b's gradient, m x m, become t t positions;
//               threads share the tiles
//   products    at each position b's mixtures times a's, summed over all tiles; threads share the positions,
//               so that each sum has one thread and one order
//   results     of each block of weights its t t positions become 3 x 3

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "ops/convolution/winograd_rows.h"
#include "ops/engine/scratch.h"
#include "ops/engine/team.h"
#include "ops/memory/recycled.h"

namespace quatrain::ops::plane {

namespace winograd_weights {
namespace {

using kernels::cpu::Store;
using kernels::cpu::WinogradStep;
using Member = engine::Team::Member;

constexpr int64_t kTiles = 64;       // of a panel, at least: the length of the products' sums
constexpr int64_t kBytes = 1 << 20;  // of a panel's transforms; within it panels have up to kMostTiles
constexpr int64_t kMostTiles = 256;
constexpr int64_t kMostPlaces = 36;

class Work {
 public:
  Work(const Plane& plane, const WeightPass& pass, int64_t m, const Images& a, const Images& b, float* dF)
      : plane_(plane), pass_(pass), m_(m), t_(m + 2), positions_(t_ * t_), a_(a), b_(b), dF_(dF) {
    down_ = (b.height + m - 1) / m, across_ = (b.width + m - 1) / m;
    rows_ = plane.batch * down_ * b.depth;
    const int64_t tile = positions_ * (a.channels + b.channels) * 4;
    const int64_t wanted = std::clamp(kBytes / tile, kTiles, kMostTiles);
    height_ = std::clamp<int64_t>(wanted / across_, 1, rows_);
    a_component_ = Meetings::most_inputs(plane, true, height_) * across_ * plane.a_units + kSkew;
    b_component_ = height_ * across_ * plane.b_units + kSkew;
    a_position_ = plane.n * a_component_, b_position_ = plane.n * b_component_;
    tiles_ = recycled_empty({positions_ * (a_position_ + b_position_)});
    for (int64_t i = 0; i < positions_; ++i) a_at_.push_back(a_tile(i)), b_at_.push_back(b_tile(i));
    block_ = plane.b_in_group() * plane.a_in_group();
    planes_ = plane.kernel[kDeep];
    sums_ = recycled_empty({positions_ * planes_ * plane.groups * pass.rank * block_});
  }

  void run() {
    const int64_t threads = std::min(engine::Team::most(), positions_);
    engine::Team::run(threads, [&](const Member& member) {
      Meetings meetings;
      std::vector<char> begun(static_cast<size_t>(planes_));  // sums that something was added to
      const auto positions = member.share(positions_);
      for (int64_t first = 0; first < rows_; first += height_) {
        const int64_t count = std::min(height_, rows_ - first);
        meetings.find(plane_, true, first, count, down_);
        const auto of_a = static_cast<int64_t>(meetings.inputs.size());
        const auto mine = member.share(of_a + count);
        for (int64_t row = mine.begin; row < mine.end; ++row)
          row < of_a ? transform_a(meetings.inputs[static_cast<size_t>(row)], row)
                     : transform_b(tile_row(first + row - of_a, b_.depth, down_), row - of_a);
        member.wait();
        for (int64_t position = positions.begin; position < positions.end; ++position)
          multiply(position, meetings, count * across_, begun);
        for (const Meeting& run : meetings.runs)
          if (run.input >= 0) begun[static_cast<size_t>(run.plane)] = true;
        member.wait();
      }
      for (int64_t plane = 0; plane < planes_; ++plane)
        for (int64_t i = positions.begin; !begun[static_cast<size_t>(plane)] && i < positions.end; ++i)
          std::fill_n(sum_of(i, plane, 0, 0), plane_.groups * pass_.rank * block_, 0.f);
    });
    at::parallel_for(0, plane_.b_units, 1, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) finish(unit);
    });
  }

 private:
  /// The panel's tiles of a position.
  float* a_tile(int64_t position) const { return tiles_.mutable_data_ptr<float>() + position * a_position_; }
  float* b_tile(int64_t position) const {
    return tiles_.mutable_data_ptr<float>() + positions_ * a_position_ + position * b_position_;
  }
  float* sum_of(int64_t position, int64_t plane, int64_t group, int64_t r) const {
    return sums_.mutable_data_ptr<float>() +
           (((position * planes_ + plane) * plane_.groups + group) * pass_.rank + r) * block_;
  }

  /// A row of tiles.
  void transform_a(const TileRow& row, int64_t in_panel) const {
    read(a_, row.slice, row.row * m_ - plane_.padding[kDown], -plane_.padding[kAcross], t_,
         WinogradStep::input, a_at_.data(), in_panel * across_, a_component_);
  }
  void transform_b(const TileRow& row, int64_t in_panel) const {
    read(b_, row.slice, row.row * m_, 0, m_, WinogradStep::output_back, b_at_.data(), in_panel * across_,
         b_component_);
  }

  /// Squares of `side` pixels from (y0, x0) on, every m pixels, to the tiles from `tile` on.
  void read(const Images& images, int64_t slice, int64_t y0, int64_t x0, int64_t side, WinogradStep step,
            float* const* places, int64_t tile, int64_t component) const {
    const int64_t from = std::max<int64_t>(y0, 0), to = std::min(y0 + side, images.height);
    engine::Scratch& memory = engine::scratch();
    const int64_t gathered = images.last ? 0 : side * images.width * images.channels,
                  line = across_ * m_ + side - m_, units = images.channels / plane_.n;
    memory.begin((gathered + images.channels) * 4 + side * line * 8 + 192);
    float* const rows = memory.take<float>(gathered);
    float* const zeros = memory.take<float>(images.channels);
    auto* const pixels = memory.take<const float*>(side * line);
    std::fill_n(zeros, images.channels, 0.f);
    if (!images.last && from < to) gather(images, slice, from, to - from, rows);
    find_pixels<const float>({y0, x0, side, line}, images.height, images.width, images.channels,
                             images.last ? images.pixel(slice, 0, 0) : rows, images.last ? 0 : from, zeros,
                             pixels);
    k_.winograd(m_, step, {pixels, line, 0, units, m_}, {places, t_, tile * units, component, 0, units},
                across_, plane_.n, units, nullptr);
  }

  /// Adds a panel's products to the sums of a position.
  void multiply(int64_t position, const Meetings& meetings, int64_t tiles,
                const std::vector<char>& begun) const {
    const int64_t a_tiles = static_cast<int64_t>(meetings.inputs.size()) * across_, a_row = plane_.a_units,
                  b_row = (tiles + 15) / 16 * 16 + kSkew, a_all = a_tiles * a_row + kSkew,
                  b_all = plane_.b_units * b_row + kSkew;
    engine::Scratch& memory = engine::scratch();
    memory.begin(pass_.rank * (a_all + b_all) * 4 + 128);
    float* const a_mixed = memory.take<float>(pass_.rank * a_all);
    float* const b_mixed = memory.take<float>(pass_.rank * b_all);
    std::vector<float*> to(static_cast<size_t>(pass_.rank));
    const float* from[engine::kMaxComponents];
    for (int64_t c = 0; c < plane_.n; ++c) from[c] = a_tile(position) + c * a_component_;
    for (int64_t r = 0; r < pass_.rank; ++r) to[static_cast<size_t>(r)] = a_mixed + r * a_all;
    k_.combine_f_f(pass_.a_in->view(), from, a_row, to.data(), a_row, 1, a_tiles * a_row, nullptr,
                   Store::set);
    for (int64_t c = 0; c < plane_.n; ++c) from[c] = b_tile(position) + c * b_component_;
    for (int64_t r = 0; r < pass_.rank; ++r) to[static_cast<size_t>(r)] = b_mixed + r * b_all;
    k_.transpose_f_f(pass_.b_in->view(), static_cast<int32_t>(plane_.n), from, plane_.b_units, to.data(),
                     b_row, tiles, plane_.b_units);
    const int64_t rows = plane_.b_in_group(), cols = plane_.a_in_group();
    std::vector<char> add = begun;
    for (const Meeting& run : meetings.runs) {
      if (run.input < 0) continue;
      const auto plane = static_cast<size_t>(run.plane);
      for (int64_t group = 0; group < plane_.groups; ++group)
        for (int64_t r = 0; r < pass_.rank; ++r)
          at::native::cpublas::brgemm(rows, cols, run.rows * across_, b_row, a_row, cols, add[plane] != 0,
                                      b_mixed + r * b_all + group * rows * b_row + run.row * across_,
                                      a_mixed + r * a_all + run.input * across_ * a_row + group * cols,
                                      sum_of(position, run.plane, group, r));
      add[plane] = true;
    }
  }

  /// Of one unit of b, all components and places: dF (results, units of b, units of a in a group, 3, 3).
  void finish(int64_t unit) const {
    const int64_t rows = plane_.b_in_group(), cols = plane_.a_in_group(), group = unit / rows,
                  row = unit % rows;
    engine::Scratch& memory = engine::scratch();
    memory.begin((positions_ * pass_.results + 9) * cols * 4 + 128);
    float* const mixed = memory.take<float>(positions_ * pass_.results * cols);
    float* const weights = memory.take<float>(9 * cols);
    std::vector<const float*> from(static_cast<size_t>(pass_.rank));
    std::vector<float*> to(static_cast<size_t>(pass_.results));
    for (int64_t plane = 0; plane < planes_; ++plane) {
      for (int64_t position = 0; pass_.out && position < positions_; ++position) {
        for (int64_t r = 0; r < pass_.rank; ++r)
          from[static_cast<size_t>(r)] = sum_of(position, plane, group, r) + row * cols;
        for (int64_t i = 0; i < pass_.results; ++i)
          to[static_cast<size_t>(i)] = mixed + (i * positions_ + position) * cols;
        k_.combine_f_f(pass_.out->view(), from.data(), cols, to.data(), cols, 1, cols, nullptr, Store::set);
      }
      const float* in[kMostPlaces];
      float* out[9];
      for (int64_t place = 0; place < 9; ++place) out[place] = weights + place * cols;
      for (int64_t i = 0; i < pass_.results; ++i) {
        for (int64_t position = 0; position < positions_; ++position)
          in[position] = pass_.out ? mixed + (i * positions_ + position) * cols
                                   : sum_of(position, plane, group, i) + row * cols;
        k_.winograd(m_, WinogradStep::weight_back, {in, t_, 0, 0}, {out, 3, 0, 0}, 1, 1, cols, nullptr);
        const float* plain = weights;
        float* target = dF_ + (i * plane_.b_units + unit) * cols * planes_ * 9 + plane * 9;
        k_.transpose_f_f(engine::copies_of(1), 1, &plain, cols, &target, planes_ * 9, 9, cols);
      }
    }
  }

  const Plane& plane_;
  const WeightPass& pass_;
  const int64_t m_, t_, positions_;
  const Images a_, b_;
  float* const dF_;
  const kernels::cpu::Table& k_ = kernels::cpu::active();
  int64_t down_, across_, rows_, planes_, height_, a_component_, b_component_, a_position_, b_position_,
      block_;
  at::Tensor tiles_, sums_;
  std::vector<float*> a_at_, b_at_;  // the tiles of each position
};

}  // namespace
}  // namespace winograd_weights

void run_winograd_weights(const Plane& plane, const WeightPass& pass, int64_t m, const Images& a,
                          const Images& b, float* dF) {
  winograd_weights::Work(plane, pass, m, a, b, dF).run();
}

}  // namespace quatrain::ops::plane
