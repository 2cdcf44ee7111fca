// Convolutions of drawn sizes on the engine, and epilogues after them, against H in float64. Corners that
// nobody thought of meet here.

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ops/convolution_reference.h"

namespace quatrain {
namespace {

using ops::Winograd;
using test::PlaneCase;

class Drawn {
 public:
  explicit Drawn(uint32_t seed) : random_(seed) {}

  int64_t number(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint32_t>(most - least + 1));
  }
  bool one_in(int64_t count) { return number(1, count) == 1; }

  PlaneCase convolution() {
    PlaneCase c;
    const char* const algebras[] = {"complex", "quaternion", "tessarine"};
    c.algebra = algebras[number(0, 2)];
    if (one_in(3)) c.algebra = one_in(2) ? "learned" : "factored", c.n = number(2, 4);
    ops::ConvolutionOptions& o = c.options;
    o.groups = one_in(3) ? 2 : 1, o.transposed = one_in(2);
    o.winograd = one_in(2) ? Winograd::none : one_in(2) ? Winograd::f2 : Winograd::f4;
    const int64_t axes = number(1, 3);
    const bool threes = one_in(3), many = axes == 1 && one_in(2), is_long = axes == 1 && one_in(2);
    const auto units = [&] { return o.groups * (many ? number(32, 70) : number(1, 10)); };
    c.units_in = units(), c.units_out = units(), c.batch = number(1, 3);
    c.kernel.clear(), o.stride.clear(), o.padding.clear(), o.dilation.clear(), o.output_padding.clear();
    int64_t image[3] = {1, 1, 1};
    for (int64_t axis = 0; axis < axes; ++axis) {
      const int64_t kernel = threes ? 3 : number(1, 4), stride = threes ? 1 : number(1, 3),
                    dilation = threes || one_in(2) ? 1 : number(2, 4), padding = number(0, 3),
                    most = std::max(stride, dilation) - 1,
                    beyond = o.transposed && most > 0 ? number(0, most) : 0,
                    reach = dilation * (kernel - 1) + 1;
      // So large that a pixel is left.
      const int64_t least = o.transposed ? (2 * padding - reach - beyond) / stride + 2 : reach - 2 * padding;
      image[3 - axes + axis] = std::max<int64_t>(1, least) + (is_long ? number(250, 350) : number(0, 6));
      c.kernel.push_back(kernel), o.stride.push_back(stride), o.padding.push_back(padding);
      o.dilation.push_back(dilation), o.output_padding.push_back(beyond);
    }
    c.depth = image[0], c.height = image[1], c.width = image[2];
    return c;
  }

  const char* activation() {
    const char* const names[] = {"identity", "relu", "tanh", "sigmoid", "gelu"};
    return names[number(0, 4)];
  }

 private:
  std::mt19937 random_;  // the same numbers everywhere, other than its distributions
};

TEST(ConvolutionRandom, IsThatOfH) {
  const int before = at::get_num_threads();
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Drawn drawn(seed);
    const PlaneCase c = drawn.convolution();
    const ops::ConvolutionOptions& o = c.options;
    const auto threads = static_cast<int>(drawn.number(1, 2)), parts = static_cast<int>(drawn.number(0, 7));
    SCOPED_TRACE(c10::str(
        "seed ", seed, ": ", c.algebra, " ", c.n, " ", c.units_in, " -> ", c.units_out, ", ", c.batch, " x ",
        c.depth, " x ", c.height, " x ", c.width, ", kernel ", at::IntArrayRef(c.kernel), ", stride ",
        at::IntArrayRef(o.stride), ", padding ", at::IntArrayRef(o.padding), ", dilation ",
        at::IntArrayRef(o.dilation), ", groups ", o.groups, ", beyond ", at::IntArrayRef(o.output_padding),
        ", Winograd ", ops::name(o.winograd), o.transposed ? ", transposed, " : ", ", threads, " threads"));
    at::set_num_threads(threads);
    const double tolerance = o.winograd == Winograd::f4 ? 2e-5 : 5e-6;
    expect_plane(c, tolerance);
    expect_epilogue(c, parts, drawn.activation(), tolerance);
    at::set_num_threads(before);
    if (testing::Test::HasFailure()) return;  // one is enough to look at
  }
}

}  // namespace
}  // namespace quatrain
