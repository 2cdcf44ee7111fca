// One way through planes without transforms. A task is a panel of some rows of pixels of the result, perhaps
// of several planes, or of a part of a long row, and some columns where there are few pixels:
//
//   mixtures  the rows of pixels that the panel reads, n -> R, with zeros around them -> [r][pixel][unit]
//   products  for each row of pixels, one sum over the rows of the kernel: pixels side by side are one long
//             row of the left operand, which begins a pixel (or a stride) further for the next pixel of the
//             result
//   results   R -> n, finished -> pixels
//
// With a dilation the places of a kernel's row are links of their own in that sum.
//
// A kernel of three axes takes the sum over its planes too, and each meets a plane of the input.
//
// From b to a a stride splits the result in phases (direct_view.h). A panel is of pixels of the grid that
// they share; its mixtures serve all of them, and no product meets a zero between pixels.

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "ops/convolution/direct_rows.h"
#include "ops/engine/products.h"
#include "ops/engine/scratch.h"
#include "ops/engine/threads.h"
#include "ops/engine/upcoming.h"

namespace quatrain::ops::plane {

namespace direct {
namespace {

using kernels::cpu::Fetched;
using kernels::cpu::Store;

constexpr int64_t kColumns = 64;    // of a product
constexpr int64_t kFewPixels = 32;  // for each thread: with fewer the threads share the columns

/// How a panel's columns are divided: in blocks, and those among threads.
struct Columns {
  int64_t blocks, parts;
};

class Task {
 public:
  Task(const Plane& plane, const Direction& way, const float* packed, const View& view, const Panels& panels,
       const Columns& columns, const Images& in, const Images& out, const engine::Epilogue& epilogue)
      : plane_(plane),
        way_(way),
        packed_(packed),
        view_(view),
        p_(panels),
        columns_(columns),
        in_(in),
        out_(out),
        epilogue_(epilogue),
        mixed_(view, panels, *way.in, way.rank, plane.n, in),
        inputs_(in.channels / plane.n),
        outputs_(out.channels / plane.n),
        product_(p_.height * p_.width * kColumns + kSkew),
        leaves_cache_(!engine::stays_in_cache(direct_packed_size(plane, way))),
        product_at_(static_cast<size_t>(way.rank)) {
    const int64_t rows_out =
        out.last ? 0 : view.deep.step * phase_rows() * p_.width * view.across.step * out.channels;
    engine::Scratch& memory = engine::scratch();
    memory.begin((mixed_.size() + way.rank * product_ + rows_out) * 4 + 4 * 64);
    mixtures_ = memory.take<float>(mixed_.size());
    products_ = memory.take<float>(way.rank * product_);
    rows_out_ = memory.take<float>(rows_out);
  }

  void run(int64_t panel, int64_t part) {
    panel_ = p_[panel];
    mixed_.read(panel_, mixtures_);
    const int64_t all = columns_.blocks * plane_.groups;
    const int64_t begin = all * part / columns_.parts, end = all * (part + 1) / columns_.parts;
    upcoming_ = {};
    if (panel + 1 < p_.count && !leaves_cache_)
      upcoming_ = {
          mixed_.fresh_of(p_[panel + 1]), {}, (end - begin) * way_.rank * view_.phases() * panel_.rows()};
    for (int64_t block = begin; block < end; ++block) multiply(block);
    const int64_t m = outputs_ / plane_.groups;
    for (int64_t block = begin; !out_.last && block < end; ++block)
      for (int64_t c = 0; c < plane_.n; ++c) {
        const int64_t col = block % columns_.blocks * kColumns;
        write(c * outputs_ + block / columns_.blocks * m + col, std::min(kColumns, m - col));
      }
  }

 private:
  void multiply(int64_t block) {
    int64_t place = 0;  // in the order of packed weights
    for (const Phase& deep : view_.deep.phases)
      for (const Phase& down : view_.down.phases)
        for (const Phase& across : view_.across.phases) {
          const int64_t width = std::clamp<int64_t>(view_.across.pixels_of(across, out_.width) - panel_.left,
                                                    0, panel_.right - panel_.left);
          if (width > 0) {
            multiply(block, deep, down, across, place, width);
            if (view_.one_phase())
              finish(block, deep, down, across, 0, panel_.rows(), width);
            else
              for (int64_t row = 0; row < panel_.rows(); ++row)
                finish(block, deep, down, across, row, 1, width);
          }
          place += deep.count * down.count * across.count;
        }
  }

  /// The products of a phase, `width` pixels a row.
  void multiply(int64_t block, const Phase& deep, const Phase& down, const Phase& across, int64_t place,
                int64_t width) {
    const int64_t q = inputs_ / plane_.groups, m = outputs_ / plane_.groups, group = block / columns_.blocks,
                  col = block % columns_.blocks * kColumns, cols = std::min(kColumns, m - col);
    const int64_t side = neighbours(plane_, across);
    const int64_t above = down.begin + view_.down.padding, before = across.begin + view_.across.padding;
    for (int64_t r = 0; r < way_.rank; ++r) {
      const float* const weights =
          packed_ + (((group * m + col) * way_.rank + r * cols) * plane_.places() + place * cols) * q;
      float* const products = products_ + r * product_;
      for (int64_t row = 0; row < panel_.rows(); ++row) {
        left_.clear(), right_.clear();
        for (int64_t w = 0; w < deep.count; ++w) {
          const int64_t plane = view_.one_phase() ? w : deep.begin + view_.deep.padding + w * deep.next;
          if (!mixed_.meets(row, plane)) continue;
          for (int64_t u = 0; u < down.count; ++u) {
            const int64_t below = above + u * down.next;
            if (!mixed_.on_image(row, below)) continue;
            for (int64_t v = 0; v < across.count; v += side) {
              left_.push_back(mixed_.at(r, row, plane, u, below, before + v * across.next) + group * q);
              right_.push_back(weights + ((w * down.count + u) * across.count + v) * q * cols);
            }
          }
        }
        const int64_t links = static_cast<int64_t>(left_.size()), depth = side * q;
        const int64_t all = deep.count * down.count * across.count * q * cols;
        const Fetched next =
            leaves_cache_ ? Fetched{weights + plane_.places() * q * cols, all} : upcoming_.next();
        engine::linked_product(width, cols, depth, {left_.data(), right_.data(), links},
                               view_.across.stride * inputs_, cols, products + row * width * cols, cols,
                               next);
      }
    }
  }

  /// Some rows of a phase of the result, from its products.
  void finish(int64_t block, const Phase& deep, const Phase& down, const Phase& across, int64_t row,
              int64_t rows, int64_t width) {
    const int64_t m = outputs_ / plane_.groups, group = block / columns_.blocks,
                  col = block % columns_.blocks * kColumns, cols = std::min(kColumns, m - col);
    const int64_t slice = out_slice((panel_.first + row) / view_.height, deep),
                  y = (panel_.first + row) % view_.height * view_.down.step + down.at;
    if (slice < 0 || y >= out_.height) return;
    const int64_t step = view_.across.step, next = step * out_.channels,
                  at = ((slice * out_.height + y) * out_.width + panel_.left * step + across.at) *
                       out_.channels,
                  in_panel = ((deep.at * phase_rows() + row * view_.down.step + down.at) * panel_width() +
                              across.at) *
                             out_.channels;
    for (int64_t r = 0; r < way_.rank; ++r)
      product_at_[static_cast<size_t>(r)] = products_ + r * product_ + row * width * cols;
    float* results[engine::kMaxComponents];
    const float* bias[engine::kMaxComponents];
    for (int64_t c = 0; c < plane_.n; ++c) {
      const int64_t channel = c * outputs_ + group * m + col;
      results[c] = (out_.last ? out_.data + at : rows_out_ + in_panel) + channel;
      bias[c] = epilogue_.bias ? epilogue_.bias + channel : nullptr;
    }
    const bool biased = epilogue_.bias && epilogue_.only_bias();
    k_.combine_f_f(way_.out->view(), product_at_.data(), cols, results, next, rows * width, cols,
                   biased ? bias : nullptr, Store::set);
    if (epilogue_.only_bias()) return;
    const auto* residual = static_cast<const float*>(epilogue_.residual.data);
    for (int64_t c = 0; c < plane_.n; ++c) {
      const int64_t channel = c * outputs_ + group * m + col;
      engine::finish_columns(k_, epilogue_, channel, rows * width, cols, results[c], next,
                             residual ? residual + at + channel : nullptr, next);
    }
  }

  /// Some channels of the panel, channels first.
  void write(int64_t channel, int64_t count) {
    const int64_t step = view_.down.step;
    for (int64_t row = panel_.first; row < panel_.last;) {
      const int64_t y = row % view_.height, rows = std::min(view_.height - y, panel_.last - row),
                    height = std::min(rows * step, out_.height - y * step),
                    x = panel_.left * view_.across.step;
      for (const Phase& deep : view_.deep.phases) {
        const int64_t slice = out_slice(row / view_.height, deep);
        const float* const from = rows_out_ + (deep.at * phase_rows() + (row - panel_.first) * step) *
                                                  panel_width() * out_.channels;
        if (slice >= 0) scatter(from, out_, {y * step, x, height, panel_width()}, slice, channel, count);
      }
      row += rows;
    }
  }

  /// The plane of the result that a plane of the grid has in a phase; -1 beyond the last.
  int64_t out_slice(int64_t slice, const Phase& deep) const {
    const int64_t z = slice % view_.depth * view_.deep.step + deep.at;
    return z < out_.depth ? slice / view_.depth * out_.depth + z : -1;
  }
  /// Rows of the result that a panel has of a phase of its planes.
  int64_t phase_rows() const { return p_.height * view_.down.step; }
  /// Pixels of the result in a row of the panel.
  int64_t panel_width() const {
    return std::min(p_.width * view_.across.step, out_.width - panel_.left * view_.across.step);
  }

  const Plane& plane_;
  const Direction& way_;
  const float* packed_;
  const View& view_;
  const Panels& p_;
  const Columns columns_;
  const Images in_, out_;
  const engine::Epilogue& epilogue_;
  const kernels::cpu::Table& k_ = kernels::cpu::active();
  MixedRows mixed_;
  const int64_t inputs_, outputs_, product_;
  const bool leaves_cache_;
  std::vector<const float*> product_at_, left_, right_;
  float *mixtures_, *products_, *rows_out_;
  Panel panel_{};
  engine::Upcoming upcoming_;  // pixels of the next panel
};

}  // namespace
}  // namespace direct

int64_t direct_packed_size(const Plane& plane, const Direction& way) {
  return plane.groups * way.rank * plane.places() * plane.a_in_group() * plane.b_in_group();
}

void pack_direct(const Plane& plane, const Direction& way, const float* F, float* packed) {
  const MixedWeights weights(plane, way, F);
  const int64_t K = weights.inputs(), N = weights.outputs();
  const direct::Axis deep(plane, way, kDeep), down(plane, way, kDown), across(plane, way, kAcross);
  std::vector<int64_t> places;  // phase by phase
  const int64_t* const kernel = plane.kernel;
  for (const direct::Phase& z : deep.phases)
    for (const direct::Phase& y : down.phases)
      for (const direct::Phase& x : across.phases)
        for (int64_t w = 0; w < z.count; ++w)
          for (int64_t u = 0; u < y.count; ++u)
            for (int64_t v = 0; v < x.count; ++v)
              places.push_back(((z.place + w * z.apart) * kernel[kDown] + y.place + u * y.apart) *
                                   kernel[kAcross] +
                               x.place + v * x.apart);
  weights.each([&](int64_t group, int64_t r, int64_t unit, const float* rows) {
    for (int64_t col = 0; col < N; col += direct::kColumns) {
      const int64_t cols = std::min(direct::kColumns, N - col);
      float* to = packed + ((group * N + col) * way.rank + r * cols) * plane.places() * K + unit * cols;
      for (const int64_t place : places) {
        std::copy_n(rows + place * N + col, cols, to);
        to += K * cols;
      }
    }
  });
}

void run_direct(const Plane& plane, const Direction& way, const float* packed, const Images& in,
                const Images& out, const engine::Epilogue& epilogue) {
  const direct::View view(plane, way, in, out);
  const int64_t threads = threads_at_hand(), pixels = plane.batch * view.depth * view.height * view.width,
                blocks = (out.channels / plane.n / plane.groups + direct::kColumns - 1) / direct::kColumns;
  const direct::Columns columns{blocks, pixels < direct::kFewPixels * threads
                                            ? std::clamp<int64_t>(blocks * plane.groups, 1, threads)
                                            : 1};
  const direct::Panels panels(plane, view, way.rank, in.channels / plane.n,
                              std::max<int64_t>(1, threads / columns.parts));
  at::parallel_for(0, panels.count * columns.parts, 1, [&](int64_t begin, int64_t end) {
    direct::Task task(plane, way, packed, view, panels, columns, in, out, epilogue);
    for (int64_t i = begin; i < end; ++i) task.run(i / columns.parts, i % columns.parts);
  });
}

}  // namespace quatrain::ops::plane
