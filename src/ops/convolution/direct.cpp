// One way through a plane without transforms. A task is a panel of some rows of pixels of the result, perhaps
// of several images, and some columns where there are few pixels:
//
//   mixtures  the rows of pixels that the panel reads, n -> R, with zeros around them    -> [r][pixel][unit]
//   products  for each row of pixels, and each row of the kernel: pixels side by side are one long row of the
//             left operand, which begins a pixel (or a stride) further for the next row of the result
//   results   R -> n, finished                                                          -> pixels
//
// With a dilation the places of a kernel's row are products of their own.

#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "ops/convolution/plane.h"
#include "ops/engine/scratch.h"

namespace quatrain::ops::plane {

namespace direct {
namespace {

using kernels::cpu::Store;

constexpr int64_t kColumns = 64;          // of a product
constexpr int64_t kMixedBytes = 1 << 19;  // of a panel's mixtures
constexpr int64_t kPixels = 128;          // of a panel: its products stay in the second level cache
constexpr int64_t kFewPixels = 32;        // for each thread: with fewer the threads share the columns
constexpr int64_t kSkew = 16;

/// The plane as one way sees it.
struct View {
  int64_t stride[2], padding[2], dilation[2];
  int64_t wide;  ///< pixels of a row of the input with its padding

  View(const Plane& plane, const Way2& way, const Images& in, const Images& out) {
    const int64_t kernel[2] = {plane.height, plane.width};
    for (int axis = 0; axis < 2; ++axis) {
      dilation[axis] = plane.dilation[axis];
      stride[axis] = way.from_a ? plane.stride[axis] : 1;
      padding[axis] =
          way.from_a ? plane.padding[axis] : dilation[axis] * (kernel[axis] - 1) - plane.padding[axis];
    }
    wide = std::max((out.width - 1) * stride[1] + (plane.width - 1) * dilation[1] + 1, in.width + padding[1]);
  }
};

struct Panels {
  int64_t rows, height, count, parts, blocks;
  int64_t most_inputs;  ///< rows of the input that a panel reads at most

  Panels(const Plane& plane, const View& view, int64_t rank, const Images& in, const Images& out,
         int64_t outputs) {
    const int64_t threads = at::in_parallel_region() ? 1 : at::get_num_threads();
    rows = plane.batch * out.height;
    blocks = (outputs + kColumns - 1) / kColumns;
    parts =
        rows * out.width < kFewPixels * threads ? std::clamp<int64_t>(blocks * plane.groups, 1, threads) : 1;
    const int64_t row_bytes = rank * view.wide * (in.channels / plane.n) * 4 * view.stride[0];
    height = std::clamp<int64_t>(std::min(kMixedBytes / row_bytes, kPixels / out.width), 1, rows);
    height = equal_parts(rows, height, std::max<int64_t>(1, threads / parts));
    count = (rows + height - 1) / height;
    // Each run of rows in one image reads the kernel's reach beyond its own.
    const int64_t reach = (plane.height - 1) * view.dilation[0] + 1,
                  images = std::min(height, height / out.height + 2);
    most_inputs = std::min(height * reach, height * view.stride[0] + images * reach);
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
    const int64_t rows_out = out.last ? 0 : p_.height * out.width * out.channels;
    mixed_ = p_.most_inputs * view.wide * inputs_ + kSkew;
    product_ = p_.height * out.width * kColumns + kSkew;
    engine::Scratch& memory = engine::scratch();
    memory.begin((way.rank * (mixed_ + product_) + rows_out) * 4 + 4 * 64);
    mixtures_ = memory.take<float>(way.rank * mixed_);
    products_ = memory.take<float>(way.rank * product_);
    rows_out_ = memory.take<float>(rows_out);
    mixture_at_.resize(static_cast<size_t>(way.rank));
    for (int64_t r = 0; r < way.rank; ++r) product_at_.push_back(products_ + r * product_);
  }

  void run(int64_t panel, int64_t part) {
    first_ = panel * p_.height, last_ = std::min(first_ + p_.height, p_.rows);
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
  /// The rows of the input that the panel reads, mixed; where each row of the result begins in them.
  void read() {
    begins_.clear();
    int64_t at = 0;  // rows that are there
    const int64_t reach = (plane_.height - 1) * view_.dilation[0] + 1;
    for (int64_t row = first_; row < last_;) {
      const int64_t b = row / out_.height, y = row % out_.height,
                    count = std::min(out_.height - y, last_ - row),
                    begin = y * view_.stride[0] - view_.padding[0];
      if (reach < view_.stride[0]) {  // rows between are not read
        for (int64_t i = 0; i < count; ++i) {
          begins_.push_back(at);
          for (int64_t j = 0; j < reach; ++j) mix(b, begin + i * view_.stride[0] + j, at++);
        }
      } else {
        for (int64_t i = 0; i < count; ++i) begins_.push_back(at + i * view_.stride[0]);
        const int64_t rows = (count - 1) * view_.stride[0] + reach;
        for (int64_t i = 0; i < rows; ++i) mix(b, begin + i, at++);
      }
      row += count;
    }
  }

  /// A row of pixels with its padding.
  void mix(int64_t b, int64_t y, int64_t at) {
    const int64_t before = std::max<int64_t>(view_.padding[1], 0),
                  skipped = std::max<int64_t>(-view_.padding[1], 0),
                  width = std::max<int64_t>(std::min(in_.width - skipped, view_.wide - before), 0),
                  after = view_.wide - before - width;
    const bool inside = y >= 0 && y < in_.height;
    for (int64_t r = 0; r < way_.rank; ++r) {
      float* const row = mixtures_ + r * mixed_ + at * view_.wide * inputs_;
      if (!inside) {
        std::fill_n(row, view_.wide * inputs_, 0.f);
        continue;
      }
      std::fill_n(row, before * inputs_, 0.f);
      std::fill_n(row + (before + width) * inputs_, after * inputs_, 0.f);
      mixture_at_[static_cast<size_t>(r)] = row + before * inputs_;
    }
    if (!inside || width == 0) return;
    const float* components[engine::kMaxComponents];
    if (in_.last) {
      for (int64_t c = 0; c < plane_.n; ++c) components[c] = in_.pixel(b, y, skipped) + c * inputs_;
      k_.combine_f_f(way_.in->view(), components, in_.channels, mixture_at_.data(), inputs_, width, inputs_,
                     nullptr, Store::set);
    } else {
      for (int64_t c = 0; c < plane_.n; ++c) components[c] = in_.row(b, c * inputs_, y) + skipped;
      k_.transpose_f_f(way_.in->view(), static_cast<int32_t>(plane_.n), components, in_.height * in_.width,
                       mixture_at_.data(), inputs_, inputs_, width);
    }
  }

  void multiply(int64_t block) {
    const int64_t q = inputs_ / plane_.groups, m = outputs_ / plane_.groups, group = block / p_.blocks,
                  col = block % p_.blocks * kColumns, cols = std::min(kColumns, m - col),
                  places = plane_.places();
    const int64_t pixels = (last_ - first_) * out_.width;
    // Places of a kernel's row that are one product: their channels lie side by side.
    const int64_t side = view_.dilation[1] == 1 && plane_.groups == 1 ? plane_.width : 1;
    for (int64_t r = 0; r < way_.rank; ++r) {
      const float* const weights = packed_ + (group * way_.rank + r) * places * q * m + col;
      for (int64_t row = 0; row < last_ - first_; ++row)
        for (int64_t place = 0; place < places; place += side) {
          const int64_t u = place / plane_.width, v = place % plane_.width;
          const float* const left =
              mixtures_ + r * mixed_ +
              ((begins_[static_cast<size_t>(row)] + u * view_.dilation[0]) * view_.wide +
               v * view_.dilation[1]) *
                  inputs_ +
              group * q;
          at::native::cpublas::brgemm(out_.width, cols, side * q, view_.stride[1] * inputs_, m, cols,
                                      place > 0, left, weights + place * q * m,
                                      products_ + r * product_ + row * out_.width * cols);
        }
    }
    float* results[engine::kMaxComponents];
    float* const base = out_.last ? out_.pixel(0, 0, 0) + first_ * out_.width * out_.channels : rows_out_;
    const float* bias[engine::kMaxComponents];
    for (int64_t c = 0; c < plane_.n; ++c) {
      const int64_t channel = c * outputs_ + group * m + col;
      results[c] = base + channel;
      bias[c] = epilogue_.bias ? epilogue_.bias + channel : nullptr;
    }
    const bool biased = epilogue_.bias && epilogue_.only_bias();
    k_.combine_f_f(way_.out->view(), product_at_.data(), cols, results, out_.channels, pixels, cols,
                   biased ? bias : nullptr, Store::set);
    if (epilogue_.only_bias()) return;
    const auto* residual = static_cast<const float*>(epilogue_.residual.data);
    for (int64_t c = 0; c < plane_.n; ++c) {
      const int64_t channel = c * outputs_ + group * m + col;
      k_.finish(results[c], out_.channels, pixels, cols,
                epilogue_.scale ? epilogue_.scale + channel : nullptr, bias[c],
                residual ? residual + first_ * out_.width * out_.channels + channel : nullptr, out_.channels,
                epilogue_.activation);
    }
  }

  /// Some channels of the panel, channels first.
  void write(int64_t channel, int64_t count) {
    for (int64_t row = first_; row < last_;) {
      const int64_t b = row / out_.height, y = row % out_.height,
                    rows = std::min(out_.height - y, last_ - row);
      scatter(rows_out_ + (row - first_) * out_.width * out_.channels, out_, b, y, rows, channel, count);
      row += rows;
    }
  }

  const Plane& plane_;
  const Way2& way_;
  const float* packed_;
  const View& view_;
  const Panels& p_;
  const Images in_, out_;
  const engine::Epilogue& epilogue_;
  const kernels::cpu::Table& k_ = kernels::cpu::active();
  int64_t inputs_, outputs_, mixed_, product_, first_ = 0, last_ = 0;
  float *mixtures_, *products_, *rows_out_;
  std::vector<float*> mixture_at_;
  std::vector<const float*> product_at_;
  std::vector<int64_t> begins_;
};

}  // namespace
}  // namespace direct

int64_t direct_packed_size(const Plane& plane, const Way2& way) {
  return plane.groups * way.rank * plane.places() * plane.a_in_group() * plane.b_in_group();
}

void pack_direct(const Plane& plane, const Way2& way, const float* F, float* packed) {
  const MixedWeights weights(plane, way, F);
  const int64_t K = weights.inputs(), N = weights.outputs();
  weights.each([&](int64_t group, int64_t r, int64_t unit, const float* rows) {
    for (int64_t place = 0; place < plane.places(); ++place)
      std::copy_n(rows + place * N, N,
                  packed + (((group * way.rank + r) * plane.places() + place) * K + unit) * N);
  });
}

void run_direct(const Plane& plane, const Way2& way, const float* packed, const Images& in, const Images& out,
                const engine::Epilogue& epilogue) {
  const direct::View view(plane, way, in, out);
  const direct::Panels panels(plane, view, way.rank, in, out, out.channels / plane.n / plane.groups);
  at::parallel_for(0, panels.count * panels.parts, 1, [&](int64_t begin, int64_t end) {
    direct::Task task(plane, way, packed, view, panels, in, out, epilogue);
    for (int64_t i = begin; i < end; ++i) task.run(i / panels.parts, i % panels.parts);
  });
}

}  // namespace quatrain::ops::plane
