// One way through planes without transforms. A task is a panel of some rows of pixels of the result, perhaps
// of several planes, or of a part of a long row, and some columns where there are few pixels:
//
//   mixtures  the rows of pixels that the panel reads, n -> R, with zeros around them    -> [r][pixel][unit]
//   products  for each row of pixels, and each row of the kernel: pixels side by side are one long row of the
//             left operand, which begins a pixel (or a stride) further for the next pixel of the result.
//             Short rows of an image are one: those a stride apart lie side by side, and what falls between
//             them is left out of the result
//   results   R -> n, finished                                                          -> pixels
//
// With a dilation the places of a kernel's row are products of their own.
//
// A kernel of three axes takes the sum over its planes too, and each meets a plane of the input.
//
// From b to a a stride splits the result in phases (direct_view.h). A panel is of pixels of the grid that
// they share; its mixtures serve all of them, and no product meets a zero between pixels.

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "ops/convolution/direct_view.h"
#include "ops/engine/scratch.h"

namespace quatrain::ops::plane {

namespace direct {
namespace {

using kernels::cpu::Store;

constexpr int64_t kColumns = 64;          // of a product
constexpr int64_t kMixedBytes = 1 << 19;  // of a panel's mixtures
constexpr int64_t kPixels = 128;          // of a panel: its products stay in the second level cache
constexpr int64_t kFewPixels = 32;        // for each thread: with fewer the threads share the columns
constexpr int64_t kLongRow = 256;         // of pixels; longer ones are cut
constexpr int64_t kSkew = 16;

struct Panels {
  int64_t rows, height, count, parts, blocks;  ///< rows of the grid, of all planes and of a panel
  int64_t width, cuts;                         ///< pixels of a panel's row; panels of a row
  int64_t wide;                                ///< pixels of a row of the input with its padding, for a panel
  int64_t most_inputs;                         ///< rows of the input that a panel reads at most

  Panels(const Plane& plane, const View& view, int64_t rank, const Images& in, int64_t outputs) {
    const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
    rows = plane.batch * view.depth * view.height;
    blocks = (outputs + kColumns - 1) / kColumns;
    parts =
        rows * view.width < kFewPixels * threads ? std::clamp<int64_t>(blocks * plane.groups, 1, threads) : 1;
    width = view.width > kLongRow ? equal_parts(view.width, kPixels, threads) : view.width;
    cuts = (view.width + width - 1) / width;
    wide = cuts > 1 ? (width - 1) * view.across.stride + view.across.reach : view.wide;
    const int64_t row_bytes = rank * wide * (in.channels / plane.n) * 4 * view.down.stride * view.planes();
    height = std::clamp<int64_t>(std::min(kMixedBytes / row_bytes, kPixels / width), 1, rows);
    height = cuts > 1 ? 1 : equal_parts(rows, height, std::max<int64_t>(1, threads / parts));
    if (view.joins_rows()) height = ends_with_planes(height, view.height);
    count = (rows + height - 1) / height * cuts;
    // Each run of rows in one plane reads the kernel's reach beyond its own.
    const int64_t runs = std::min(height, height / view.height + 2);
    most_inputs = height * view.down.stride + runs * view.down.reach;
    if (!view.joins_rows()) most_inputs = std::min(most_inputs, height * view.met());
    most_inputs *= view.planes();
  }

 private:
  /// At most `height` rows so that panels end where planes do, lest each have products of another height; but
  /// not so few that joining rows gains nothing.
  static int64_t ends_with_planes(int64_t height, int64_t plane) {
    if (height >= plane) return height - height % plane;
    int64_t part = height;
    while (plane % part != 0) --part;
    return 2 * part >= height ? part : height;
  }
};

class Task {
 public:
  Task(const Plane& plane, const Way2& way, const float* packed, const View& view, const Panels& panels,
       const Images& in, const Images& out, const engine::Epilogue& epilogue)
      : plane_(plane),
        way_(way),
        packed_(packed),
        view_(view),
        p_(panels),
        in_(in),
        out_(out),
        epilogue_(epilogue) {
    inputs_ = in.channels / plane.n, outputs_ = out.channels / plane.n;
    split_ = view.joins_rows() ? view.down.stride : 1;
    const int64_t rows_out =
        out.last ? 0 : view.deep.step * phase_rows() * p_.width * view.across.step * out.channels;
    mixed_ = p_.most_inputs * p_.wide * inputs_ + kSkew;
    product_ = p_.height * view.pitch(p_.width) * kColumns + kSkew;
    engine::Scratch& memory = engine::scratch();
    memory.begin((way.rank * (mixed_ + product_) + rows_out) * 4 + 4 * 64);
    mixtures_ = memory.take<float>(way.rank * mixed_);
    products_ = memory.take<float>(way.rank * product_);
    rows_out_ = memory.take<float>(rows_out);
    mixture_at_.resize(static_cast<size_t>(way.rank));
    product_at_.resize(static_cast<size_t>(way.rank));
  }

  void run(int64_t panel, int64_t part) {
    first_ = panel / p_.cuts * p_.height, last_ = std::min(first_ + p_.height, p_.rows);
    left_ = panel % p_.cuts * p_.width, right_ = std::min(left_ + p_.width, view_.width);
    read();
    const int64_t all = p_.blocks * plane_.groups;
    const int64_t begin = all * part / p_.parts, end = all * (part + 1) / p_.parts;
    for (int64_t block = begin; block < end; ++block) multiply(block);
    const int64_t m = outputs_ / plane_.groups;
    for (int64_t block = begin; !out_.last && block < end; ++block)
      for (int64_t c = 0; c < plane_.n; ++c) {
        const int64_t col = block % p_.blocks * kColumns;
        write(c * outputs_ + block / p_.blocks * m + col, std::min(kColumns, m - col));
      }
  }

 private:
  /// The rows of the input that the panel reads, mixed; where those of each row of the result are.
  void read() {
    places_.clear(), taken_.clear();
    mixed_rows_ = 0;
    for (int64_t row = first_; row < last_;) {
      const int64_t y = row % view_.height, count = std::min(view_.height - y, last_ - row);
      for (int64_t i = 0; i < count; ++i)
        for (int64_t plane = 0; plane < view_.planes(); ++plane) places_.push_back({});
      for (int64_t plane = 0; plane < view_.planes(); ++plane) {
        const int64_t slice = met_slice(row / view_.height, plane);
        if (slice >= 0) read(slice, y, count, row - first_, plane);
      }
      row += count;
    }
  }

  /// The plane of the input that a plane of the kernel brings to one of the grid, or one of those from its
  /// first to its last where phases differ; -1 off the image, and where none of them is met.
  int64_t met_slice(int64_t slice, int64_t plane) const {
    const Axis& deep = view_.deep;
    const Phase& only = deep.phases[0];
    const int64_t offset = view_.one_phase() ? only.begin + plane * only.next : plane - deep.padding,
                  z = slice % view_.depth * deep.stride + offset;
    return z >= 0 && z < in_.depth && deep.meets(offset) ? slice / view_.depth * in_.depth + z : -1;
  }

  /// What rows y .. y + count of the grid meet in a plane, unless a run of rows before them met the same.
  void read(int64_t slice, int64_t y, int64_t count, int64_t row, int64_t plane) {
    const int64_t stride = view_.down.stride, met = view_.met(), begin = y * stride - view_.down.padding,
                  all = (count - 1) * stride + view_.down.reach;
    const bool close = count * met < all;  // rows between, of a stride or a dilation, are not read
    const Run run{slice, y, count, mixed_rows_};
    const auto found = std::find_if(taken_.begin(), taken_.end(), [&](const Run& other) {
      return other.slice == slice && other.y == y && other.count == count;
    });
    const int64_t at = found != taken_.end() ? found->at : mixed_rows_,
                  apart = close ? count : (all + split_ - 1) / split_;
    for (int64_t i = 0; i < count; ++i)
      places_[static_cast<size_t>((row + i) * view_.planes() + plane)] = {
          at + i * (close ? 1 : stride / split_), apart, close};
    if (found != taken_.end()) return;
    taken_.push_back(run);
    if (!close) {
      for (int64_t i = 0; i < all; ++i) mix(slice, begin + i, at + i % split_ * apart + i / split_);
      mixed_rows_ += apart * split_;
      return;
    }
    const Phase& phase = view_.down.phases[0];
    const int64_t above = phase.begin + view_.down.padding;
    for (int64_t u = 0; u < met; ++u)
      for (int64_t i = 0; i < count; ++i)
        mix(slice, begin + above + i * stride + u * phase.next, mixed_rows_++);
  }

  /// A row of pixels, or what the panel reads of it, with its padding.
  void mix(int64_t slice, int64_t y, int64_t at) {
    const int64_t begin = left_ * view_.across.stride - view_.across.padding,
                  before = std::clamp<int64_t>(-begin, 0, p_.wide), x = begin + before,
                  width = std::clamp<int64_t>(in_.width - x, 0, p_.wide - before),
                  after = p_.wide - before - width;
    const bool inside = y >= 0 && y < in_.height;
    for (int64_t r = 0; r < way_.rank; ++r) {
      float* const row = mixtures_ + r * mixed_ + at * p_.wide * inputs_;
      if (!inside) {
        std::fill_n(row, p_.wide * inputs_, 0.f);
        continue;
      }
      std::fill_n(row, before * inputs_, 0.f);
      std::fill_n(row + (before + width) * inputs_, after * inputs_, 0.f);
      mixture_at_[static_cast<size_t>(r)] = row + before * inputs_;
    }
    if (!inside || width == 0) return;
    const float* components[engine::kMaxComponents];
    if (in_.last) {
      for (int64_t c = 0; c < plane_.n; ++c) components[c] = in_.pixel(slice, y, x) + c * inputs_;
      k_.combine_f_f(way_.in->view(), components, in_.channels, mixture_at_.data(), inputs_, width, inputs_,
                     nullptr, Store::set);
    } else {
      for (int64_t c = 0; c < plane_.n; ++c) components[c] = in_.row(slice, c * inputs_, y) + x;
      k_.transpose_f_f(way_.in->view(), static_cast<int32_t>(plane_.n), components, in_.channel(),
                       mixture_at_.data(), inputs_, inputs_, width);
    }
  }

  void multiply(int64_t block) {
    int64_t place = 0;  // in the order of packed weights
    for (const Phase& deep : view_.deep.phases)
      for (const Phase& down : view_.down.phases)
        for (const Phase& across : view_.across.phases) {
          const int64_t width =
              std::clamp<int64_t>(view_.across.pixels_of(across, out_.width) - left_, 0, right_ - left_);
          if (width > 0) {
            multiply(block, deep, down, across, place, width);
            if (view_.one_phase() && !view_.joins_rows())
              finish(block, deep, down, across, 0, last_ - first_, width);
            else
              for (int64_t row = 0; row < last_ - first_; ++row)
                finish(block, deep, down, across, row, 1, width);
          }
          place += deep.count * down.count * across.count;
        }
  }

  /// The products of a phase, `width` pixels a row.
  void multiply(int64_t block, const Phase& deep, const Phase& down, const Phase& across, int64_t place,
                int64_t width) {
    const int64_t q = inputs_ / plane_.groups, m = outputs_ / plane_.groups, group = block / p_.blocks,
                  col = block % p_.blocks * kColumns, cols = std::min(kColumns, m - col);
    // Places of a kernel's row that are one product: their channels lie side by side.
    const int64_t side = across.next == 1 && plane_.groups == 1 ? across.count : 1;
    const bool joins = view_.joins_rows();
    const int64_t pitch = view_.pitch(width);
    const int64_t above = down.begin + view_.down.padding, before = across.begin + view_.across.padding;
    for (int64_t r = 0; r < way_.rank; ++r) {
      const float* const weights =
          packed_ + ((group * way_.rank + r) * plane_.places() + place) * q * m + col;
      float* const products = products_ + r * product_;
      for (int64_t row = 0, rows; row < last_ - first_; row += rows) {
        rows = joins ? std::min(view_.height - (first_ + row) % view_.height, last_ - first_ - row) : 1;
        bool begun = false;
        for (int64_t w = 0; w < deep.count; ++w) {
          const int64_t plane = view_.one_phase() ? w : deep.begin + view_.deep.padding + w * deep.next;
          const Place& place_at = places_[static_cast<size_t>(row * view_.planes() + plane)];
          if (place_at.begin < 0) continue;
          for (int64_t u = 0; u < down.count; ++u) {
            // Rows of zeros are passed over, which for a large dilation are many.
            const int64_t met =
                (first_ + row) % view_.height * view_.down.stride + down.begin + u * down.next;
            if (!joins && (met < 0 || met >= in_.height)) continue;
            for (int64_t v = 0; v < across.count; v += side) {
              const int64_t y = place_at.row(u, above + u * down.next, split_), x = before + v * across.next;
              at::native::cpublas::brgemm(
                  (rows - 1) * pitch + width, cols, side * q, view_.across.stride * inputs_, m, cols, begun,
                  mixtures_ + r * mixed_ + (y * p_.wide + x) * inputs_ + group * q,
                  weights + ((w * down.count + u) * across.count + v) * q * m, products + row * pitch * cols);
              begun = true;
            }
          }
        }
        if (!begun) std::fill_n(products + row * pitch * cols, ((rows - 1) * pitch + width) * cols, 0.f);
      }
    }
  }

  /// Some rows of a phase of the result, from its products.
  void finish(int64_t block, const Phase& deep, const Phase& down, const Phase& across, int64_t row,
              int64_t rows, int64_t width) {
    const int64_t m = outputs_ / plane_.groups, group = block / p_.blocks, col = block % p_.blocks * kColumns,
                  cols = std::min(kColumns, m - col);
    const int64_t slice = out_slice((first_ + row) / view_.height, deep),
                  y = (first_ + row) % view_.height * view_.down.step + down.at;
    if (slice < 0 || y >= out_.height) return;
    const int64_t step = view_.across.step, next = step * out_.channels,
                  at = ((slice * out_.height + y) * out_.width + left_ * step + across.at) * out_.channels,
                  in_panel = ((deep.at * phase_rows() + row * view_.down.step + down.at) * panel_width() +
                              across.at) *
                             out_.channels;
    for (int64_t r = 0; r < way_.rank; ++r)
      product_at_[static_cast<size_t>(r)] = products_ + r * product_ + row * view_.pitch(width) * cols;
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
      k_.finish(results[c], next, rows * width, cols, epilogue_.scale ? epilogue_.scale + channel : nullptr,
                bias[c], residual ? residual + at + channel : nullptr, next, epilogue_.activation);
    }
  }

  /// Some channels of the panel, channels first.
  void write(int64_t channel, int64_t count) {
    const int64_t step = view_.down.step;
    for (int64_t row = first_; row < last_;) {
      const int64_t y = row % view_.height, rows = std::min(view_.height - y, last_ - row),
                    height = std::min(rows * step, out_.height - y * step), x = left_ * view_.across.step;
      for (const Phase& deep : view_.deep.phases) {
        const int64_t slice = out_slice(row / view_.height, deep);
        const float* const from =
            rows_out_ + (deep.at * phase_rows() + (row - first_) * step) * panel_width() * out_.channels;
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
    return std::min(p_.width * view_.across.step, out_.width - left_ * view_.across.step);
  }

  const Plane& plane_;
  const Way2& way_;
  const float* packed_;
  const View& view_;
  const Panels& p_;
  const Images in_, out_;
  const engine::Epilogue& epilogue_;
  const kernels::cpu::Table& k_ = kernels::cpu::active();
  int64_t inputs_, outputs_, split_, mixed_, product_, first_ = 0, last_ = 0, left_ = 0, right_ = 0;
  float *mixtures_, *products_, *rows_out_;
  std::vector<float*> mixture_at_;
  std::vector<const float*> product_at_;
  /// Where the rows of a plane of the input that a row of the result meets are among the mixed rows; `begin`
  /// is -1 where none is met. Close: the row that row u of the kernel meets is at begin + u apart. Else the
  /// row of the input b rows below the first is at begin + b % split apart + b / split.
  struct Place {
    int64_t begin = -1, apart = 0;
    bool close = false;

    int64_t row(int64_t met, int64_t below, int64_t split) const {
      return begin + (close ? met * apart : below % split * apart + below / split);
    }
  };
  std::vector<Place> places_;  // [row][plane of the kernel]
  /// What rows of the grid met in a plane of the input, from a mixed row on.
  struct Run {
    int64_t slice, y, count, at;
  };
  std::vector<Run> taken_;
  int64_t mixed_rows_ = 0;
};

}  // namespace
}  // namespace direct

int64_t direct_packed_size(const Plane& plane, const Way2& way) {
  return plane.groups * way.rank * plane.places() * plane.a_in_group() * plane.b_in_group();
}

void pack_direct(const Plane& plane, const Way2& way, const float* F, float* packed) {
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
    float* const to = packed + ((group * way.rank + r) * plane.places() * K + unit) * N;
    for (size_t i = 0; i < places.size(); ++i)
      std::copy_n(rows + places[i] * N, N, to + static_cast<int64_t>(i) * K * N);
  });
}

void run_direct(const Plane& plane, const Way2& way, const float* packed, const Images& in, const Images& out,
                const engine::Epilogue& epilogue) {
  const direct::View view(plane, way, in, out);
  const direct::Panels panels(plane, view, way.rank, in, out.channels / plane.n / plane.groups);
  at::parallel_for(0, panels.count * panels.parts, 1, [&](int64_t begin, int64_t end) {
    direct::Task task(plane, way, packed, view, panels, in, out, epilogue);
    for (int64_t i = begin; i < end; ++i) task.run(i / panels.parts, i % panels.parts);
  });
}

}  // namespace quatrain::ops::plane
