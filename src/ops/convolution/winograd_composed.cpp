// Winograd's F(m x m, 3 x 3) of ATen's calls, in float64, which the engine does not multiply. Panels of tiles
// that stay in the caches are transformed, mixed, multiplied at each position by the R mixtures of the
// weights, and transformed back.

#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/constants.h"
#include "ops/convolution/convolution.h"
#include "ops/map/prepared.h"

namespace quatrain::ops::composed {

namespace {

/// The transforms as matrices: of t x t pixels (t t, t t), of 3 x 3 weights (t t, 9), to m x m pixels
/// (m m, t t).
struct Transforms {
  at::Tensor input, weight, output;
};

using Matrix = std::vector<std::vector<double>>;

/// What does along two axes what the matrix does along one.
at::Tensor along_both(const Matrix& one) {
  std::vector<double> values;
  for (const auto& down : one)
    for (const auto& across : one)
      for (const double u : down)
        for (const double v : across) values.push_back(u * v);
  const auto rows = static_cast<int64_t>(one.size()), columns = static_cast<int64_t>(one[0].size());
  return constant_tensor(values, {rows * rows, columns * columns}, at::kDouble, at::kCPU);
}

/// Of one axis, by interpolation at points and at infinity; then of two.
Transforms make_transforms(int64_t m) {
  const std::vector<double> points =
      m == 2 ? std::vector<double>{0, 1, -1} : std::vector<double>{0, .75, -.75, 1.5, -1.5};
  const size_t t = points.size() + 1, pixels = static_cast<size_t>(m);
  const auto zeros = [](size_t rows, size_t columns) { return Matrix(rows, std::vector<double>(columns)); };
  Matrix input = zeros(t, t), weight = zeros(t, 3), output = zeros(pixels, t);
  for (size_t i = 0; i < t; ++i) {
    // The polynomial that is zero at the other points, whose coefficients read the input.
    std::vector<double> others{1};
    double scale = 1;
    for (size_t j = 0; j + 1 < t; ++j) {
      if (j == i) continue;
      if (i + 1 < t) scale *= points[i] - points[j];
      others.push_back(0);
      for (size_t k = others.size() - 1; k > 0; --k) others[k] = others[k - 1] - points[j] * others[k];
      others[0] *= -points[j];
    }
    std::copy(others.begin(), others.end(), input[i].begin());
    const auto power = [&](size_t k, size_t highest) {
      return i + 1 < t ? std::pow(points[i], static_cast<double>(k)) : static_cast<double>(k == highest);
    };
    for (size_t k = 0; k < 3; ++k) weight[i][k] = power(k, 2) / scale;
    for (size_t k = 0; k < pixels; ++k) output[k][i] = power(k, pixels - 1);
  }
  return {along_both(input), along_both(weight), along_both(output)};
}

/// Made once, and never destroyed: tensors may outlive static objects.
const Transforms& transforms_of(int64_t m) {
  static const auto* const two = new Transforms(make_transforms(2));
  static const auto* const four = new Transforms(make_transforms(4));
  return m == 2 ? *two : *four;
}

/// Images as tiles of side x side pixels, every m of them: (B, channels, down, across, side, side), a view.
at::Tensor as_tiles(const at::Tensor& images, int64_t side, int64_t m) {
  return images.unfold(2, side, m).unfold(3, side, m);
}
at::Tensor padded(const at::Tensor& x, int64_t down, int64_t across, int64_t m, int64_t top, int64_t left,
                  int64_t side) {
  const int64_t height = (down - 1) * m + side, width = (across - 1) * m + side;
  return at::constant_pad_nd(x, {left, width - x.size(3) - left, top, height - x.size(2) - top});
}

/// Some tiles of both sides of a call: those of `count` images, of `rows` rows of tiles.
struct Panel {
  int64_t image, count, row, rows;
  at::Tensor of(const at::Tensor& tiles) const { return tiles.narrow(0, image, count).narrow(2, row, rows); }
};
template <class Use>
void each_panel(int64_t batch, int64_t down, int64_t across, int64_t channels, const Use& use) {
  // Wider layers have more weights to read for each.
  const int64_t tiles = std::clamp<int64_t>(channels, 64, 256), here = down * across,
                images = std::clamp<int64_t>(tiles / here, 1, batch),
                rows = images > 1 ? down : std::clamp<int64_t>(tiles / across, 1, down);
  for (int64_t image = 0; image < batch; image += images)
    for (int64_t row = 0; row < down; row += rows)
      use(Panel{image, std::min(images, batch - image), row, std::min(rows, down - row)});
}

/// A panel's tiles at each position, mixed: (t t R, units, tiles).
at::Tensor mixed_tiles(const at::Tensor& tiles, const at::Tensor& transform, const at::Tensor& mixture) {
  const int64_t R = mixture.size(0), n = mixture.size(1), positions = transform.size(0),
                channels = tiles.size(1), places = tiles.size(4) * tiles.size(5);
  const at::Tensor by_place = tiles.permute({4, 5, 1, 0, 2, 3}).reshape({places, -1});
  const at::Tensor at_positions = at::mm(transform, by_place).view({positions, n, -1});
  return at::bmm(mixture.expand({positions, R, n}), at_positions).view({positions * R, channels / n, -1});
}

/// A call as its images meet: b of a, as in plane.h.
struct Sizes {
  int64_t batch, height, width, top, left, down, across;

  /// Of the way whose results have the size of `result`, from a to b or back.
  Sizes(const at::Tensor& input, at::IntArrayRef result, const ConvolutionCall& call, bool from_a, int64_t m)
      : batch(input.size(0)),
        height(result[2]),
        width(result[3]),
        top(from_a ? call.padding[0] : 2 - call.padding[0]),
        left(from_a ? call.padding[1] : 2 - call.padding[1]),
        down((height + m - 1) / m),
        across((width + m - 1) / m) {}
};

}  // namespace

int64_t winograd_tile(const at::Tensor& x, const at::Tensor& F, const ConvolutionCall& call) {
  // Fewer bits would be rounded in each transform, and other devices have transforms of their own.
  const bool served = x.device().is_cpu() && call.map.compute_dtype(x) == at::kDouble;
  const bool asked = call.winograd == Winograd::f2 || call.winograd == Winograd::f4;
  if (!served || !asked || !fits_winograd(F, call) || call.axes() != 2 || call.groups != 1 || x.numel() == 0)
    return 0;
  return call.winograd == Winograd::f2 ? 2 : 4;
}

at::Tensor run_winograd(const at::Tensor& input, const at::Tensor& F, at::IntArrayRef result, bool forward,
                        int64_t m, const ConvolutionCall& call) {
  const Versions versions(F, call.map);
  const at::ScalarType dtype = input.scalar_type();
  const FactorTensors f = factor_tensors(call.map, dtype, input.device());
  const Transforms& transforms = transforms_of(m);
  const bool from_a = forward != call.transposed;
  const int64_t n = F.size(0), R = f.U.size(1), t = m + 2, positions = t * t;
  const auto transformed = [&] {
    at::Tensor kernels = at::mm(f.U.t(), F.to(dtype).reshape({n, -1})).view({R, F.size(1), F.size(2), 9});
    if (!from_a) kernels = kernels.transpose(1, 2).flip(3);
    const int64_t outputs = kernels.size(1), inputs = kernels.size(2);
    return at::mm(transforms.weight, kernels.permute({3, 0, 1, 2}).reshape({9, -1}))
        .view({positions * R, outputs, inputs});
  };
  const at::Tensor weights = forward ? prepared(F, call.map, versions,
                                                {.reader = m == 2 ? Form::winograd2 : Form::winograd4,
                                                 .way = Way::factored,
                                                 .dtype = dtype,
                                                 .read_in = F.scalar_type(),
                                                 .geometry = geometry_of(call)},
                                                transformed)
                                     : transformed();
  const at::Tensor to_R = forward ? f.V.t() : f.W.t(), to_n = forward ? f.W : f.V;
  const Sizes sizes(input, result, call, from_a, m);
  const at::Tensor tiles =
      as_tiles(padded(input, sizes.down, sizes.across, m, sizes.top, sizes.left, t), t, m);
  const at::Tensor whole =
                       at::empty({result[0], result[1], sizes.down * m, sizes.across * m}, input.options()),
                   results = as_tiles(whole, m, m);
  each_panel(sizes.batch, sizes.down, sizes.across, input.size(1), [&](const Panel& panel) {
    const at::Tensor products = at::bmm(weights, mixed_tiles(panel.of(tiles), transforms.input, to_R));
    const at::Tensor components = at::bmm(to_n.expand({positions, n, R}), products.view({positions, R, -1}));
    panel.of(results).copy_(at::mm(transforms.output, components.view({positions, -1}))
                                .view({m, m, result[1], panel.count, panel.rows, sizes.across})
                                .permute({3, 2, 4, 5, 0, 1}));
  });
  return whole.narrow(2, 0, sizes.height).narrow(3, 0, sizes.width);
}

at::Tensor winograd_weight_gradient(const at::Tensor& a, const at::Tensor& b, const at::Tensor& F, int64_t m,
                                    const ConvolutionCall& call) {
  const FactorTensors f = factor_tensors(call.map, a.scalar_type(), a.device());
  const Transforms& transforms = transforms_of(m);
  const int64_t R = f.U.size(1), t = m + 2, positions = t * t;
  const Sizes sizes(a, b.sizes(), call, true, m);
  const at::Tensor of_a = as_tiles(padded(a, sizes.down, sizes.across, m, sizes.top, sizes.left, t), t, m),
                   of_b = as_tiles(padded(b, sizes.down, sizes.across, m, 0, 0, m), m, m);
  const at::Tensor a_mix = call.transposed ? f.W.t() : f.V.t(), b_mix = call.transposed ? f.V.t() : f.W.t();
  const at::Tensor back = transforms.output.t().contiguous();
  const at::Tensor sums = at::zeros({positions * R, F.size(1), F.size(2)}, a.options());
  each_panel(sizes.batch, sizes.down, sizes.across, a.size(1), [&](const Panel& panel) {
    sums.baddbmm_(mixed_tiles(panel.of(of_b), back, b_mix),
                  mixed_tiles(panel.of(of_a), transforms.input, a_mix).transpose(1, 2));
  });
  const at::Tensor places = at::mm(transforms.weight.t(), sums.view({positions, -1})).view({9, R, -1});
  return at::matmul(f.U, places).permute({1, 2, 0}).reshape(F.sizes());
}

}  // namespace quatrain::ops::composed
