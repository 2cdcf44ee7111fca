// One way through planes by Winograd's F(m x m, 3 x 3), t = m + 2. A task is a panel of some rows of tiles,
// and some columns of the result where there are few tiles. Vectors run over channels:
//
//   input     each tile is transformed -> tiles[position][component][tile][unit]
//   products  at each of the t t positions the map of the components on the tiles: n -> R, R products,
//             R -> n, in the first and second level cache -> in their place
//   output    each tile is transformed back, and finished -> pixels
//
// With three axes rows of tiles that lie behind each other are neighbours in a panel. The products are sums
// over the kernel's planes, each of which meets another plane of the input; its tiles are transformed once.
//
// Pixels are reached through pointers; those off the image point at zeros, and on output at a dump.

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "ops/convolution/winograd_rows.h"
#include "ops/engine/products.h"
#include "ops/engine/scratch.h"
#include "ops/engine/threads.h"
#include "ops/engine/upcoming.h"

namespace quatrain::ops::plane {

namespace winograd {
namespace {

using kernels::cpu::Fetched;
using kernels::cpu::Square;
using kernels::cpu::WinogradStep;

constexpr int64_t kTiles = 64;     // of a panel, and rows of a product at most
constexpr int64_t kAtOnce = 24;    // so many are mixed, multiplied and combined in the first level cache
constexpr int64_t kRows = 4;       // parts of a panel are a multiple of these
constexpr int64_t kColumns = 64;   // of a product
constexpr int64_t kFewTiles = 32;  // for each thread: with fewer the threads share the columns
constexpr int64_t kMostPlaces = 36;

struct Panels {
  int64_t m, t, positions, down, across, tile_rows;
  int64_t height;        ///< rows of tiles of a panel
  int64_t most_inputs;   ///< rows of tiles of the input that it meets at most
  int64_t count, parts;  ///< panels; parts of the columns
  int64_t blocks;        ///< of columns, in a group

  Panels(const Plane& plane, const Direction& way, int64_t m_, const Images& out, int64_t outputs)
      : m(m_), t(m_ + 2), positions(t * t), down((out.height + m - 1) / m), across((out.width + m - 1) / m) {
    const int64_t threads = threads_at_hand();
    tile_rows = plane.batch * down * out.depth;
    blocks = (outputs + kColumns - 1) / kColumns;
    const int64_t columns = blocks * plane.groups;
    parts = tile_rows * across < kFewTiles * threads ? std::clamp<int64_t>(columns, 1, threads) : 1;
    height =
        equal_parts(tile_rows, std::max<int64_t>(1, kTiles / across), std::max<int64_t>(1, threads / parts));
    count = (tile_rows + height - 1) / height;
    most_inputs = Meetings::most_inputs(plane, way.from_a, height);
  }
};

/// A task's memory, and its work.
class Task {
 public:
  Task(const Plane& plane, const Direction& way, const float* packed, const Panels& panels, const Images& in,
       const Images& out, const engine::Epilogue& epilogue)
      : plane_(plane),
        way_(way),
        packed_(packed),
        p_(panels),
        in_(in),
        out_(out),
        epilogue_(epilogue),
        planes_(plane.kernel[kDeep]),
        deep_(!Meetings::are_pairs(plane)),
        leaves_cache_(!engine::stays_in_cache(winograd_packed_size(plane, way, panels.m))) {
    const int64_t most = p_.most_inputs * p_.across, rows = std::min(kTiles, p_.height * p_.across);
    inputs_ = in.channels / plane.n, outputs_ = out.channels / plane.n;
    width_ = std::max(inputs_, outputs_);
    component_ = most * width_ + kSkew;
    position_ = plane.n * component_ + kSkew;
    // Weights that leave the cache are read for as many tiles as there are.
    step_ = std::min(rows, deep_ || leaves_cache_ ? kTiles : kAtOnce);
    mixed_ = (deep_ ? most : step_) * width_ + kSkew;
    product_ = step_ * kColumns + kSkew;
    const int64_t rows_in = in.last ? 0 : p_.t * in.width * in.channels,
                  rows_out = out.last ? 0 : p_.m * out.width * out.channels;
    engine::Scratch& memory = engine::scratch();
    memory.begin((p_.positions * position_ + way.rank * (mixed_ + product_) + rows_in + rows_out +
                  in.channels + out.channels) *
                     4 +
                 8 * 64);
    tiles_ = memory.take<float>(p_.positions * position_);
    mixtures_ = memory.take<float>(way.rank * mixed_);
    products_ = memory.take<float>(way.rank * product_);
    rows_in_ = memory.take<float>(rows_in), rows_out_ = memory.take<float>(rows_out);
    zeros_ = memory.take<float>(in.channels), dump_ = memory.take<float>(out.channels);
    std::fill_n(zeros_, in.channels, 0.f);
    left_.resize(static_cast<size_t>(way.rank)), right_.resize(left_.size());
    for (size_t r = 0; r < left_.size(); ++r) {
      links_.push_back({&left_[r], &right_[r], 1});
      product_at_.push_back(products_ + static_cast<int64_t>(r) * product_);
    }
    for (int64_t i = 0; i < p_.positions; ++i) position_at_.push_back(tiles_ + i * position_);
    pixels_in_.resize(static_cast<size_t>(p_.t * (p_.across * p_.m + 2)));
    pixels_out_.resize(static_cast<size_t>(p_.m * p_.across * p_.m));
    find_plain();
  }

  void run(int64_t panel, int64_t part) {
    first_ = panel * p_.height, last_ = std::min(first_ + p_.height, p_.tile_rows);
    const int64_t all = p_.blocks * plane_.groups;
    block_ = all * part / p_.parts, block_end_ = all * (part + 1) / p_.parts;
    meetings_.find(plane_, way_.from_a, first_, last_ - first_, p_.down);
    const auto read_rows = static_cast<int64_t>(meetings_.inputs.size());
    for (int64_t row = 0; row < read_rows; ++row) read(row);
    const int64_t tiles = (last_ - first_) * p_.across;
    const int64_t step = (equal_parts(tiles, step_, 1) + kRows - 1) / kRows * kRows,
                  steps = (tiles + step - 1) / step;
    // The pixels of the result are fetched, then those that the next panel meets.
    upcoming_ = {pixels_of(out_, first_, last_, 0),
                 pixels_of(in_, last_, std::min(last_ + p_.height, p_.tile_rows), 2 - top()),
                 steps * (block_end_ - block_) * p_.positions * (deep_ ? way_.rank : 1)};
    for (int64_t position = 0; position < p_.positions; ++position) {
      if (deep_) mix(position, 0, read_rows * p_.across);
      for (int64_t tile = 0; tile < tiles; tile += step) {
        const int64_t count = std::min(step, tiles - tile);
        if (!deep_) mix(position, tile, count);
        multiply(position, tile, count);
      }
    }
    for (int64_t row = first_; row < last_; ++row) write(row);
  }

 private:
  /// Mixtures that are a component as it is are multiplied where it lies, if nothing takes its place before
  /// the last product; the others are made.
  void find_plain() {
    const bool taken = p_.blocks * plane_.groups == 1;
    mixing_ = taken ? &way_.in->made() : way_.in;
    for (int64_t r = 0; r < way_.rank; ++r) {
      plain_.push_back(taken ? way_.in->plain(r) : -1);
      if (plain_.back() < 0) mixture_at_.push_back(mixtures_ + r * mixed_);
    }
  }

  void read(int64_t row) {
    const auto [slice, tiles] = meetings_.inputs[static_cast<size_t>(row)];
    const int64_t y0 = tiles * p_.m - top(), from = std::max<int64_t>(y0, 0),
                  to = std::min(y0 + p_.t, in_.height), line = p_.across * p_.m + 2;
    if (!in_.last && from < to) gather(in_, slice, from, to - from, rows_in_);
    find_pixels<const float>({y0, -left(), p_.t, line}, in_.height, in_.width, in_.channels,
                             in_.last ? in_.pixel(slice, 0, 0) : rows_in_, in_.last ? 0 : from, zeros_,
                             pixels_in_.data());
    k_.winograd(p_.m, WinogradStep::input, {pixels_in_.data(), line, 0, inputs_, p_.m},
                {position_at_.data(), p_.t, row * p_.across * width_, component_, 0, width_}, p_.across,
                plane_.n, inputs_, nullptr);
  }

  float* component(int64_t position, int64_t c) const {
    return tiles_ + position * position_ + c * component_;
  }

  /// The inputs of some tiles of a position that are not multiplied where they lie.
  void mix(int64_t position, int64_t tile, int64_t tiles) {
    for (int64_t c = 0; c < plane_.n; ++c) components_[c] = component(position, c) + tile * width_;
    combine(mixing_->view(), components_, width_, mixture_at_.data(), width_, tiles, inputs_);
  }

  /// The results of some tiles of a position.
  void multiply(int64_t position, int64_t tile, int64_t tiles) {
    const int64_t q = inputs_ / plane_.groups, m = outputs_ / plane_.groups;
    float* results[engine::kMaxComponents];
    for (int64_t block = block_; block < block_end_; ++block) {
      const int64_t group = block / p_.blocks, col = block % p_.blocks * kColumns,
                    cols = std::min(kColumns, m - col);
      const float* weights = packed_ + (group * p_.positions + position) * way_.rank * planes_ * q * m + col;
      for (size_t r = 0; r < links_.size(); ++r) {
        const int32_t plain = plain_[r];
        left_[r] =
            (plain < 0 ? mixtures_ + static_cast<int64_t>(r) * mixed_ : components_[plain]) + group * q;
        right_[r] = weights + static_cast<int64_t>(r) * planes_ * q * m;
      }
      if (deep_)
        multiply_runs(tile, tiles, q, m, cols);
      else
        engine::linked_products(
            tiles, cols, q, links_.data(), way_.rank, width_, m, product_at_.data(), cols,
            leaves_cache_ ? Fetched{weights + q * m, way_.rank * q * m} : upcoming_.next());
      for (int64_t c = 0; c < plane_.n; ++c)
        results[c] = component(position, c) + tile * width_ + group * m + col;
      combine(way_.out->view(), product_at_.data(), cols, results, width_, tiles, cols);
    }
  }

  /// The products of tiles that meet those of several planes, whose sums they are.
  void multiply_runs(int64_t tile, int64_t tiles, int64_t q, int64_t m, int64_t cols) {
    for (size_t r = 0; r < links_.size(); ++r) {
      const Fetched pixels = upcoming_.next();
      for (const Meeting& run : meetings_.runs) {
        const int64_t begin = std::max(run.row * p_.across, tile),
                      end = std::min((run.row + run.rows) * p_.across, tile + tiles),
                      from = begin + (run.input - run.row) * p_.across;
        if (begin >= end || (run.input < 0 && run.plane > 0)) continue;
        const float* const tiles_of_run = left_[r] + from * width_;
        const float* const weights_of_run = right_[r] + run.plane * q * m;
        float* const to = product_at_[r] + (begin - tile) * cols;
        if (run.input < 0)
          std::fill_n(to, (end - begin) * cols, 0.f);
        else if (run.plane == 0)
          engine::linked_product(end - begin, cols, q, {&tiles_of_run, &weights_of_run, 1}, width_, m, to,
                                 cols, leaves_cache_ ? Fetched{weights_of_run + q * m, q * m} : pixels);
        else
          at::native::cpublas::brgemm(end - begin, cols, q, width_, m, cols, true, tiles_of_run,
                                      weights_of_run, to);
      }
    }
  }

  /// Rows without a gap are one long row.
  void combine(const kernels::cpu::Mix& mix, const float* const* in, int64_t in_row, float* const* out,
               int64_t out_row, int64_t rows, int64_t cols) const {
    const bool whole = in_row == cols && out_row == cols;
    k_.combine_f_f(mix, in, in_row, out, out_row, whole ? 1 : rows, whole ? rows * cols : cols, nullptr,
                   kernels::cpu::Store::set);
  }

  void write(int64_t row) {
    const auto [slice, tiles] = tile_row(row, out_.depth, p_.down);
    const int64_t y0 = tiles * p_.m, height = std::min(p_.m, out_.height - y0);
    float* const base = out_.last ? out_.pixel(slice, y0, 0) : rows_out_;
    const float* bias = epilogue_.only_bias() ? epilogue_.bias : nullptr;
    const int64_t line = p_.across * p_.m;
    find_pixels<float>({0, 0, p_.m, line}, height, out_.width, out_.channels, base, 0, dump_,
                       pixels_out_.data());
    const int64_t tile = (row - first_) * p_.across;
    columns([&](int64_t unit, int64_t count) {
      k_.winograd(p_.m, WinogradStep::output,
                  {position_at_.data(), p_.t, tile * width_ + unit, component_, 0, width_},
                  {pixels_out_.data(), line, unit, outputs_, p_.m}, p_.across, plane_.n, count,
                  bias ? bias + unit : nullptr);
    });
    const int64_t count = height * out_.width;
    if (!epilogue_.only_bias())
      ranges([&](int64_t channel, int64_t width) {
        const auto* residual = static_cast<const float*>(epilogue_.residual.data);
        const int64_t first = (slice * out_.height + y0) * out_.width * out_.channels + channel;
        engine::finish_columns(k_, epilogue_, channel, count, width, base + channel, out_.channels,
                               residual ? residual + first : nullptr, out_.channels);
      });
    if (!out_.last)
      ranges([&](int64_t channel, int64_t width) {
        scatter(rows_out_, out_, {y0, 0, height, out_.width}, slice, channel, width);
      });
  }

  /// About the pixels of rows of tiles from `first` to `last`, from `below` the first of theirs on. With
  /// three axes they are no one stretch of memory.
  Fetched pixels_of(const Images& images, int64_t first, int64_t last, int64_t below) const {
    if (!images.last || images.depth > 1 || out_.depth > 1 || first == last) return {};
    const auto [slice, tiles] = tile_row(first, 1, p_.down);
    const int64_t y = std::clamp<int64_t>(tiles * p_.m + below, 0, images.height - 1);
    return {images.pixel(slice, y, 0), (last - first) * p_.m * images.width * images.channels};
  }

  /// Calls use(first unit, units) for runs of a component's units that this task computes.
  template <class Use>
  void columns(const Use& use) const {
    if (p_.parts == 1) return use(0, outputs_);
    const int64_t m = outputs_ / plane_.groups;
    for (int64_t block = block_; block < block_end_; ++block) {
      const int64_t col = block % p_.blocks * kColumns;
      use(block / p_.blocks * m + col, std::min(kColumns, m - col));
    }
  }
  /// The same for runs of channels.
  template <class Use>
  void ranges(const Use& use) const {
    if (p_.parts == 1) return use(0, out_.channels);
    columns([&](int64_t unit, int64_t count) {
      for (int64_t c = 0; c < plane_.n; ++c) use(c * outputs_ + unit, count);
    });
  }

  /// Rows and columns of the input before the first of the output.
  int64_t top() const { return way_.from_a ? plane_.padding[kDown] : 2 - plane_.padding[kDown]; }
  int64_t left() const { return way_.from_a ? plane_.padding[kAcross] : 2 - plane_.padding[kAcross]; }

  const Plane& plane_;
  const Direction& way_;
  const float* packed_;
  const Panels& p_;
  const Images in_, out_;
  const engine::Epilogue& epilogue_;
  const kernels::cpu::Table& k_ = kernels::cpu::active();
  int64_t step_, width_, component_, position_, inputs_, outputs_, mixed_, product_;
  int64_t first_ = 0, last_ = 0, block_ = 0, block_end_ = 0;
  float *tiles_, *mixtures_, *products_, *rows_in_, *rows_out_, *zeros_, *dump_;
  std::vector<float*> mixture_at_;  // of those that are made
  const engine::Mixing* mixing_;    // theirs
  std::vector<int32_t> plain_;
  const float* components_[engine::kMaxComponents];  // the first that were mixed last
  Meetings meetings_;
  std::vector<float*> product_at_;
  std::vector<const float*> left_, right_;
  std::vector<kernels::cpu::Links> links_;
  std::vector<float*> position_at_, pixels_out_;
  std::vector<const float*> pixels_in_;
  const int64_t planes_;
  const bool deep_;  // planes of the result may meet others of the input, or none
  const bool leaves_cache_;
  engine::Upcoming upcoming_;
};

}  // namespace
}  // namespace winograd

int64_t winograd_packed_size(const Plane& plane, const Direction& way, int64_t m) {
  return plane.groups * (m + 2) * (m + 2) * way.rank * plane.kernel[kDeep] * plane.a_in_group() *
         plane.b_in_group();
}

void pack_winograd(const Plane& plane, const Direction& way, const float* F, int64_t m, float* packed) {
  const MixedWeights weights(plane, way, F);
  const int64_t K = weights.inputs(), N = weights.outputs(), positions = (m + 2) * (m + 2),
                planes = plane.kernel[kDeep];
  const auto& k = kernels::cpu::active();
  weights.each([&](int64_t group, int64_t r, int64_t unit, const float* rows) {
    const float* in[9];
    float* out[winograd::kMostPlaces];
    for (int64_t w = 0; w < planes; ++w) {
      for (int64_t place = 0; place < 9; ++place) in[place] = rows + (w * 9 + place) * N;
      for (int64_t position = 0; position < positions; ++position)
        out[position] =
            packed + ((((group * positions + position) * way.rank + r) * planes + w) * K + unit) * N;
      k.winograd(m, kernels::cpu::WinogradStep::weight, {in, 3, 0, 0}, {out, m + 2, 0, 0}, 1, 1, N, nullptr);
    }
  });
}

void run_winograd(const Plane& plane, const Direction& way, const float* packed, int64_t m, const Images& in,
                  const Images& out, const engine::Epilogue& epilogue) {
  const winograd::Panels panels(plane, way, m, out, out.channels / plane.n / plane.groups);
  at::parallel_for(0, panels.count * panels.parts, 1, [&](int64_t begin, int64_t end) {
    winograd::Task task(plane, way, packed, panels, in, out, epilogue);
    for (int64_t i = begin; i < end; ++i) task.run(i / panels.parts, i % panels.parts);
  });
}

}  // namespace quatrain::ops::plane
