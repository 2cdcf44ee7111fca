#include "ops/convolution/plane.h"

#include <ATen/ops/empty.h>

#include "kernels/cpu/kernels.h"

namespace quatrain::ops::plane {

Plane make_plane(const at::Tensor& x, const at::Tensor& F, const ConvolutionCall& call) {
  const std::vector<c10::SymInt> sizes = result_sizes(x, F, call);
  const bool one = call.axes() == 1;
  const size_t last = one ? 0 : 1;
  const auto height_of = [&](int64_t whole) { return one ? 1 : whole; };
  Plane plane{};
  plane.batch = x.size(0), plane.n = F.size(0), plane.groups = call.groups;
  const int64_t x_height = height_of(x.size(2)), x_width = x.size(-1),
                y_height = height_of(sizes[2].expect_int()), y_width = sizes.back().expect_int();
  plane.b_units = F.size(1), plane.a_units = F.size(2) * call.groups;
  plane.a_height = call.transposed ? y_height : x_height, plane.a_width = call.transposed ? y_width : x_width;
  plane.b_height = call.transposed ? x_height : y_height, plane.b_width = call.transposed ? x_width : y_width;
  plane.height = height_of(F.size(3)), plane.width = F.size(-1);
  plane.stride[0] = one ? 1 : call.stride[0], plane.stride[1] = call.stride[last];
  plane.padding[0] = one ? 0 : call.padding[0], plane.padding[1] = call.padding[last];
  plane.dilation[0] = one ? 1 : call.dilation[0], plane.dilation[1] = call.dilation[last];
  return plane;
}

at::Tensor dense(const at::Tensor& t) {
  return t.to(at::kFloat).contiguous(format_of(t));
}

Images images_of(const at::Tensor& t) {
  const bool one = t.dim() == 3;
  return {static_cast<float*>(const_cast<void*>(t.const_data_ptr())), t.size(1), one ? 1 : t.size(2),
          t.size(-1), !one && !t.is_contiguous()};
}

at::Tensor dense_last(const at::Tensor& t) {
  return t.to(at::kFloat).movedim(1, -1).contiguous();
}

Images last_images_of(const at::Tensor& t) {
  return {static_cast<float*>(const_cast<void*>(t.const_data_ptr())), t.size(-1),
          t.dim() == 3 ? 1 : t.size(1), t.size(-2), true};
}

void gather(const Images& images, int64_t b, int64_t y, int64_t rows, float* to) {
  const float* from = images.row(b, 0, y);
  kernels::cpu::active().transpose_f_f(engine::copies_of(1), 1, &from, images.height * images.width, &to,
                                       images.channels, images.channels, rows * images.width);
}

void scatter(const float* from, const Images& images, const Window& window, int64_t b, int64_t channel,
             int64_t count) {
  // Whole rows are one run of pixels.
  const bool whole = window.cols == images.width;
  const int64_t runs = whole ? 1 : window.rows,
                pixels = window.rows * window.cols / std::max<int64_t>(1, runs);
  for (int64_t run = 0; run < runs; ++run) {
    const float* pixel = from + run * pixels * images.channels + channel;
    float* to = images.row(b, channel, window.y + run) + window.x;
    kernels::cpu::active().transpose_f_f(engine::copies_of(1), 1, &pixel, images.channels, &to,
                                         images.height * images.width, pixels, count);
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
