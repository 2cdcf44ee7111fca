#include "ops/convolution/plane.h"

#include <ATen/ops/empty.h>

#include "kernels/cpu/kernels.h"

namespace quatrain::ops::plane {

Plane make_plane(const at::Tensor& x, const at::Tensor& F, const ConvolutionCall& call) {
  const std::vector<int64_t> sizes = known_result_sizes(x, F, call);
  Plane plane{};
  plane.batch = x.size(0), plane.n = F.size(0), plane.groups = call.groups;
  plane.b_units = F.size(1), plane.a_units = F.size(2) * call.groups;
  for (int64_t axis = 0; axis < kAxes; ++axis) {
    const int64_t given = axis - (kAxes - call.axes());
    const auto i = static_cast<size_t>(std::max<int64_t>(given, 0));
    const bool is = given >= 0;
    const int64_t x_size = is ? x.size(2 + given) : 1, y_size = is ? sizes[2 + i] : 1;
    plane.a_size[axis] = call.transposed ? y_size : x_size;
    plane.b_size[axis] = call.transposed ? x_size : y_size;
    plane.kernel[axis] = is ? F.size(3 + given) : 1;
    plane.stride[axis] = is ? call.stride[i] : 1;
    plane.padding[axis] = is ? call.padding[i] : 0;
    plane.dilation[axis] = is ? call.dilation[i] : 1;
  }
  return plane;
}

at::Tensor dense(const at::Tensor& t) {
  return in_order(t.to(at::kFloat), format_of(t));
}

Images images_of(const at::Tensor& t) {
  return {static_cast<float*>(const_cast<void*>(t.const_data_ptr())),
          t.size(1),
          t.dim() == 5 ? t.size(2) : 1,
          t.dim() == 3 ? 1 : t.size(-2),
          t.size(-1),
          !t.is_contiguous()};
}

void gather(const Images& images, int64_t slice, int64_t y, int64_t rows, float* to) {
  const float* from = images.row(slice, 0, y);
  kernels::cpu::active().transpose_f_f(engine::copies_of(1), 1, &from, images.channel(), &to, images.channels,
                                       images.channels, rows * images.width);
}

void scatter(const float* from, const Images& images, const Window& window, int64_t slice, int64_t channel,
             int64_t count) {
  // Whole rows are one run of pixels.
  const bool whole = window.cols == images.width;
  const int64_t runs = whole ? 1 : window.rows,
                pixels = window.rows * window.cols / std::max<int64_t>(1, runs);
  for (int64_t run = 0; run < runs; ++run) {
    const float* pixel = from + run * pixels * images.channels + channel;
    float* to = images.row(slice, channel, window.y + run) + window.x;
    kernels::cpu::active().transpose_f_f(engine::copies_of(1), 1, &pixel, images.channels, &to,
                                         images.channel(), pixels, count);
  }
}

int64_t equal_parts(int64_t whole, int64_t largest, int64_t threads) {
  const int64_t parts = (whole + largest - 1) / largest,
                rounded = std::min(whole, (parts + threads - 1) / threads * threads);
  return (whole + rounded - 1) / rounded;
}

void MixedWeights::mix(int64_t group, int64_t first, int64_t count, float* to) const {
  const auto& k = kernels::cpu::active();
  const int64_t rows = plane_.b_in_group(), columns = plane_.a_in_group(), places = plane_.places(),
                block = plane_.b_units * columns * places;
  const kernels::cpu::Mix mix = way_.weights->view();
  const float* in[engine::kMaxComponents];
  std::vector<float*> out(static_cast<size_t>(way_.rank));
  const auto place = [&](int64_t row, int64_t unit, int64_t within) {
    for (int64_t i = 0; i < plane_.n; ++i)
      in[i] = F_ + i * block + ((group * rows + row) * columns + unit) * places;
    for (int64_t r = 0; r < way_.rank; ++r)
      out[static_cast<size_t>(r)] = to + (r * count + within) * places * outputs();
  };
  const auto n = static_cast<int32_t>(plane_.n);
  if (way_.from_a) {
    place(0, first, 0);
    k.transpose_f_f(mix, n, in, columns * places, out.data(), rows, rows, count * places);
  } else {
    for (int64_t unit = 0; unit < count; ++unit) {
      place(first + unit, 0, unit);
      k.transpose_f_f(mix, n, in, places, out.data(), columns, columns, places);
    }
    // The kernel turned, place by place.
    for (int64_t block_ = 0; block_ < way_.rank * count; ++block_)
      for (int64_t p = 0; p < places / 2; ++p)
        std::swap_ranges(to + (block_ * places + p) * columns, to + (block_ * places + p + 1) * columns,
                         to + (block_ * places + places - 1 - p) * columns);
  }
}

}  // namespace quatrain::ops::plane
