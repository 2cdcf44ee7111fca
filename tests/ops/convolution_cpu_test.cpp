// The engine's way without transforms, forced, against H in float64.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <limits>

#include "kernels/cpu/kernels.h"
#include "ops/convolution_reference.h"
#include "quatrain/conv_ops.h"
#include "quatrain/layer_ops.h"

namespace quatrain {
namespace {

using ops::ConvolutionOptions;
using ops::Way;
using ops::Winograd;
using test::expect_plane;
using test::PlaneCase;
using test::relative_error;

TEST(ConvolutionPlane, DirectOfEveryOption) {
  const auto with = [](std::vector<int64_t> kernel, ConvolutionOptions options) {
    PlaneCase c{.kernel = std::move(kernel)};
    options.way = Way::factored, options.winograd = Winograd::none;
    c.options = options;
    expect_plane(c);
  };
  with({3}, {.padding = {1}});
  with({4}, {.stride = {2}, .padding = {3}, .dilation = {2}, .groups = 4});
  with({5}, {.stride = {3}, .padding = {2}, .dilation = {2}, .transposed = true, .groups = 2});
  with({3, 3}, {.padding = {1}});
  with({3, 3}, {.stride = {2}, .padding = {1}});
  with({1, 1}, {});
  with({1, 1}, {.stride = {2, 3}});
  with({1, 1}, {.padding = {2, 1}});
  with({5, 2}, {.stride = {1, 3}, .padding = {2, 0}});
  with({3, 3}, {.padding = {2, 3}, .dilation = {2, 3}});
  with({3, 3}, {.padding = {12}, .dilation = {12}});  // rows between those that meet
  with({3, 2}, {.stride = {2}, .padding = {9}, .dilation = {7, 2}});
  with({3, 3}, {.padding = {8}, .dilation = {9}, .transposed = true});
  with({2, 2}, {.stride = {3}, .padding = {1}});
  with({3, 3}, {.padding = {1}, .groups = 4});
  with({7, 7}, {.stride = {2}, .padding = {3}, .groups = 2});
  with({3, 4}, {.padding = {1}, .transposed = true});
  with({3, 3}, {.dilation = {2}, .transposed = true, .groups = 2});
}

// Short rows of the result, of images that do not fill a panel or end within one; rows of the input that are
// met alone, or all, by steps of one and more.
TEST(ConvolutionPlane, DirectOfShortRows) {
  const auto with = [](int64_t height, std::vector<int64_t> kernel, ConvolutionOptions options,
                       int64_t width = 32) {
    PlaneCase c{.batch = 3, .height = height, .width = width, .kernel = std::move(kernel), .depth = 4};
    options.way = Way::factored, options.winograd = Winograd::none;
    c.options = options;
    expect_plane(c);
  };
  for (const int64_t height : {2, 7, 20, 33}) {
    SCOPED_TRACE("height " + std::to_string(height));
    with(height, {3, 3}, {.stride = {2}, .padding = {1}});
    with(height, {3, 3}, {.stride = {2}, .padding = {1}, .groups = 2});
    with(height, {3, 3}, {.stride = {3, 2}, .padding = {1}});
    with(height, {1, 3}, {.stride = {2, 2}, .padding = {0, 1}});
    with(height, {2, 3}, {.stride = {3, 2}, .padding = {1, 1}});
    with(height, {3, 3}, {.stride = {3, 2}, .padding = {2, 1}, .dilation = {2, 1}});
    with(height, {3, 3}, {.stride = {1, 2}, .padding = {1}});
    with(height, {3, 3}, {.padding = {1}}, 16);
    with(height, {3, 3, 3}, {.stride = {2}, .padding = {1}});
    with(height, {2, 3, 3}, {.stride = {3, 2, 2}, .padding = {0, 1, 1}});
  }
}

// The last column is met by no place of the kernel: what it holds is nobody's.
TEST(ConvolutionPlane, PixelsThatAreNotMetLeaveNoTrace) {
  at::Tensor x = torch::randn({2, 64, 32, 32});
  const at::Tensor F = torch::randn({4, 16, 16, 3, 3}, torch::requires_grad());
  x.select(3, 31).fill_(std::numeric_limits<float>::quiet_NaN());
  x.requires_grad_();
  const at::Tensor y =
      ops::convolution(x, F, {}, {"quaternion", {}, {}}, {.stride = {2}, .way = Way::factored});
  const auto grads = torch::autograd::grad({y.sum()}, {x, F});
  EXPECT_TRUE(y.isfinite().all().item<bool>());
  for (const at::Tensor& grad : grads) EXPECT_TRUE(grad.isfinite().all().item<bool>());
}

TEST(ConvolutionPlane, DirectOfThreeAxes) {
  const auto with = [](std::vector<int64_t> image, std::vector<int64_t> kernel, ConvolutionOptions options) {
    options.way = Way::factored, options.winograd = Winograd::none;
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(c10::str(at::IntArrayRef(image), " by ", at::IntArrayRef(kernel), ", stride ",
                            at::IntArrayRef(options.stride), transposed ? ", transposed" : ""));
      PlaneCase c{.units_out = 72, .batch = 3, .height = image[1], .width = image[2], .kernel = kernel};
      c.depth = image[0], c.options = options, c.options.transposed = transposed;
      if (transposed && options.stride.size() == 3) c.options.output_padding = {1, 0, 1};
      expect_plane(c);
    }
  };
  with({3, 5, 6}, {3, 3, 3}, {.padding = {1}});
  with({9, 4, 4}, {3, 3, 3}, {.padding = {1}});
  with({1, 5, 6}, {3, 3, 3}, {.padding = {1}});
  with({5, 8, 8}, {2, 1, 3}, {.padding = {0, 2, 1}, .groups = 2});
  with({7, 8, 8}, {3, 3, 3}, {.stride = {2, 2, 2}, .padding = {1}});
  with({6, 9, 7}, {4, 4, 4}, {.stride = {2, 3, 2}, .padding = {1}, .groups = 4});
  with({9, 5, 30}, {3, 3, 3}, {.stride = {3, 1, 2}, .padding = {2, 1, 0}});
  with({5, 6, 6}, {2, 3, 3}, {.stride = {3, 2, 2}, .padding = {3, 1, 1}});
  with({9, 9, 9}, {3, 3, 2}, {.padding = {4, 2, 1}, .dilation = {4, 2, 1}});
  with({11, 6, 6}, {3, 2, 3}, {.stride = {2, 2, 3}, .padding = {3, 2, 2}, .dilation = {3, 2, 2}});
  with({4, 2, 300}, {2, 3, 3}, {.padding = {1}});
  with({5, 6, 6}, {1, 1, 1}, {.stride = {2, 1, 3}, .padding = {1}});
  with({4, 6, 6}, {1, 3, 3}, {.padding = {1}});  // more zeros than the kernel is long
  with({5, 6, 6}, {2, 3, 3}, {.padding = {2, 1, 1}});
  // Most planes between a kernel's first and last are met by none of its phases.
  with({23, 4, 4}, {3, 2, 2}, {.stride = {2, 1, 2}, .padding = {1}, .dilation = {8, 1, 1}});
}

// What is multiplied in float32 is rounded once.
TEST(ConvolutionPlane, Bfloat16IsMultipliedInFloat32) {
  torch::manual_seed(4);
  const ops::Bfloat16Guard widened(ops::Bfloat16::widened);
  const auto bf16 = torch::kBFloat16;
  for (const Winograd winograd : {Winograd::none, Winograd::f2})
    for (const bool learned : {false, true}) {
      SCOPED_TRACE(std::string(ops::name(winograd)) + (learned ? ", learned" : ""));
      ConvolutionOptions options{.padding = {1}};
      options.way = Way::factored, options.winograd = winograd;
      const at::Tensor A = test::table_of("quaternion").to(torch::kFloat),
                       x = torch::randn({2, 32, 9, 7}).to(bf16), F = torch::randn({4, 12, 8, 3, 3}).to(bf16),
                       g = torch::randn({2, 48, 9, 7}).to(bf16);
      const auto factors = ops::decompose(A).factors;
      const auto run = [&](at::ScalarType type) {
        const at::Tensor x_ = x.to(type).requires_grad_(), F_ = F.to(type).requires_grad_(),
                         A_ = A.clone().requires_grad_();
        const ops::Product product =
            learned ? ops::Product{"learned", A_, factors} : ops::Product{"quaternion", {}, {}};
        const at::Tensor y = ops::convolution(x_, F_, {}, product, options);
        std::vector<at::Tensor> inputs{x_, F_};
        if (learned) inputs.push_back(A_);
        auto all = torch::autograd::grad({y}, inputs, {g.to(y.scalar_type())});
        all.insert(all.begin(), y);
        return all;
      };
      const auto exact = run(torch::kFloat), rounded = run(bf16);
      EXPECT_TRUE(rounded[0].equal(exact[0].to(bf16)));
      EXPECT_TRUE(rounded[1].equal(exact[1].to(bf16)));
      EXPECT_TRUE(rounded[2].equal(exact[2].to(bf16)));
      if (learned) {
        EXPECT_LT(relative_error(rounded[3], exact[3]), 1e-5);
      }
    }
}

// Rows that are cut, of images and of signals, in all passes and both orders.
TEST(ConvolutionPlane, LongRows) {
  for (const int64_t width : {257, 700})
    for (const bool transposed : {false, true})
      for (const auto& [stride, dilation] : {std::pair{1, 1}, {1, 70}, {2, 1}, {3, 2}}) {
        SCOPED_TRACE(std::to_string(width) + ", stride " + std::to_string(stride) + ", dilation " +
                     std::to_string(dilation) + (transposed ? ", transposed" : ""));
        PlaneCase c{.batch = 2, .height = 3, .width = width, .kernel = {2, 3}};
        c.options.way = Way::factored, c.options.winograd = Winograd::none;
        c.options.stride = {1, stride}, c.options.dilation = {1, dilation}, c.options.padding = {1, dilation};
        c.options.transposed = transposed;
        expect_plane(c);
        // Of signals, with more columns than a product has.
        c.units_in = 34, c.units_out = 70, c.kernel = {3}, c.options.groups = 2;
        c.options.stride = {stride}, c.options.dilation = {dilation}, c.options.padding = {dilation};
        expect_plane(c);
      }
}

// The errors that docs/engine.md names. Without transforms the error is that of sums of a row of the kernel,
// not of all places at once.
TEST(ConvolutionPlane, ErrorsAreAsSmallAsDocumented) {
  for (const int64_t units : {64, 128}) {
    torch::manual_seed(3);
    const at::Tensor x = torch::randn({4, 4 * units, 8, 8}).contiguous(at::MemoryFormat::ChannelsLast),
                     F = torch::randn({4, units, units, 3, 3});
    const at::Tensor exact =
        ops::convolution(x.to(at::kDouble), F.to(at::kDouble), {}, {"quaternion", {}, {}},
                         {.padding = {1}, .way = Way::materialised});
    for (const auto& [winograd, most] : {std::pair{Winograd::none, units == 64 ? 4.5e-7 : 6e-7},
                                         {Winograd::f2, 6e-7},
                                         {Winograd::f4, 2e-6}}) {
      const at::Tensor y = ops::convolution(x, F, {}, {"quaternion", {}, {}},
                                            {.padding = {1}, .way = Way::factored, .winograd = winograd});
      EXPECT_LT(relative_error(y, exact), most) << units << " units, Winograd " << ops::name(winograd);
    }
  }
}

// Against a stride the result falls into phases: even and uneven images, places that no phase or several
// have, strides wider than the kernel, and rows of few pixels and many.
TEST(ConvolutionPlane, BackAgainstAStride) {
  const auto with = [](int64_t height, int64_t width, std::vector<int64_t> kernel,
                       ConvolutionOptions options) {
    options.way = Way::factored, options.winograd = Winograd::none;
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(std::to_string(height) + " x " + std::to_string(width) + ", stride " +
                   std::to_string(options.stride[0]) + (transposed ? ", transposed" : ""));
      PlaneCase c{.units_out = 72, .batch = 3, .height = height, .width = width, .kernel = kernel};
      c.options = options, c.options.transposed = transposed;
      if (transposed && options.stride[0] > 1) c.options.output_padding = {1, 0};
      expect_plane(c);
    }
  };
  for (const auto& [height, width] : {std::pair{8, 8}, {9, 7}, {30, 29}, {5, 70}}) {
    with(height, width, {3, 3}, {.stride = {2}, .padding = {1}});
    with(height, width, {4, 4}, {.stride = {2}, .padding = {1}});
    with(height, width, {3, 2}, {.stride = {3, 1}, .padding = {1, 0}, .groups = 2});
  }
  with(9, 9, {1, 1}, {.stride = {3, 2}, .padding = {1}});
  with(9, 9, {2, 1}, {.stride = {4, 3}});
  with(9, 12, {3, 3}, {.stride = {2, 4}, .padding = {2, 1}, .dilation = {2, 2}});
  with(12, 12, {3, 2}, {.stride = {6, 2}, .padding = {4, 3}, .dilation = {4, 3}});
  with(6, 6, {1, 2}, {.stride = {2}, .padding = {3}});
}

// What a stride leaves out takes neither memory nor time.
TEST(ConvolutionPlane, AStrideMayBeLargerThanTheImage) {
  const auto with = [](std::vector<int64_t> kernel, ConvolutionOptions options, int64_t height, int64_t width,
                       int64_t depth = 1) {
    PlaneCase c{.batch = 3, .height = height, .width = width, .kernel = std::move(kernel), .depth = depth};
    options.way = Way::factored;
    c.options = options;
    expect_plane(c);
  };
  constexpr int64_t kHuge = 1'000'000'007;
  with({3, 3}, {.stride = {7, kHuge}, .padding = {1}}, 5, 6);
  with({3, 3}, {.stride = {kHuge}}, 3, 40);
  with({3, 3, 2}, {.stride = {kHuge, 2, kHuge}, .padding = {1}}, 5, 6, 4);
  with({2, 3}, {.stride = {kHuge, 2}, .padding = {0, 1}, .transposed = true}, 1, 4);
  with({2, 3}, {.stride = {kHuge, 3}, .transposed = true, .output_padding = {5, 2}}, 1, 4);
  with({1, 3, 2}, {.stride = {kHuge, kHuge, 4}, .dilation = {3}, .transposed = true, .output_padding = {2}},
       1, 4);
}

// The weights that are kept belong to the phases that a result has.
TEST(ConvolutionPlane, ASmallResultDoesNotPackForALargeOne) {
  torch::manual_seed(5);
  const at::NoGradGuard no_grad;
  const at::Tensor F = torch::randn({4, 8, 8, 3, 3});
  ConvolutionOptions options{.stride = {5}, .padding = {1}, .transposed = true, .way = Way::factored};
  for (const int64_t side : {1, 4, 1}) {
    const at::Tensor x = torch::randn({2, 32, side, side});
    options.constant = true;
    const at::Tensor kept = ops::convolution(x, F, {}, {"quaternion", {}, {}}, options);
    options.constant = false;
    EXPECT_TRUE(kept.equal(ops::convolution(x, F, {}, {"quaternion", {}, {}}, options))) << side;
  }
}

// torch's own gradient of such weights writes beyond its memory (8 channels, channels last, two threads).
TEST(ConvolutionPlane, OnePixelWithAStride) {
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  for (const int64_t units : {1, 2, 16})
    for (const auto& [down, across] : {std::pair<int64_t, int64_t>{2, 2}, {3, 1}, {13, 20}}) {
      SCOPED_TRACE(std::to_string(units) + " units, stride " + std::to_string(down) + ", " +
                   std::to_string(across));
      PlaneCase c{.units_in = units, .units_out = units, .batch = 9, .height = 12, .width = 12};
      c.kernel = {1, 1};
      c.options.padding = {0}, c.options.stride = {down, across}, c.options.way = Way::automatic;
      expect_plane(c);
    }
  at::set_num_threads(threads);
}

TEST(ConvolutionPlane, TheGradientOfTheInputLiesAsTheInput) {
  for (const int64_t kernel : {1, 3})
    for (const int64_t stride : {1, 2})
      for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
        const at::Tensor x = torch::randn({2, 32, 6, 6}).contiguous(format),
                         F = torch::randn({4, 8, 8, kernel, kernel});
        const ConvolutionOptions options{.stride = {stride}, .padding = {kernel / 2}};
        const at::Tensor y = ops::convolution(x, F, {}, {"quaternion", {}, {}}, options);
        const auto [dx, dF, dA] = ops::convolution_backward(torch::ones_like(y), x, F, {"quaternion", {}, {}},
                                                            options, {true, false, false});
        EXPECT_TRUE(y.is_contiguous(format)) << kernel << ", " << stride;
        EXPECT_TRUE(dx.is_contiguous(format)) << kernel << ", " << stride;
      }
}

TEST(ConvolutionPlane, EveryAlgebraAndWidth) {
  for (const std::string algebra :
       {"complex", "quaternion", "octonion", "split_quaternion", "dual", "tessarine"})
    for (const auto& [in, out] : {std::pair{8, 8}, {9, 17}, {33, 70}, {130, 8}})
      for (const Winograd winograd : {Winograd::none, Winograd::automatic}) {
        SCOPED_TRACE(algebra + ", " + std::to_string(in) + " to " + std::to_string(out));
        PlaneCase c{
            .algebra = algebra, .units_in = in, .units_out = out, .batch = 1, .height = 4, .width = 6};
        c.options.winograd = winograd;
        expect_plane(c);
      }
}

TEST(ConvolutionPlane, LearnedStructures) {
  // A that trains, its factors followed beside it; and trained factors.
  const auto with = [](std::vector<int64_t> kernel, ConvolutionOptions options) {
    for (const std::string algebra : {"learned", "factored"})
      for (const int64_t n : {3, 4})
        for (const bool transposed : {false, true})
          for (const Way way : {Way::automatic, Way::factored}) {
            SCOPED_TRACE(c10::str(algebra, ", n = ", n, ", kernel ", at::IntArrayRef(kernel), ", groups ",
                                  options.groups, ", dilation ", at::IntArrayRef(options.dilation),
                                  transposed ? ", transposed, " : ", ", ops::name(way)));
            PlaneCase c{.algebra = algebra, .batch = 4, .height = 12, .width = 12, .kernel = kernel, .n = n};
            c.units_in = c.units_out = 16 * options.groups, c.depth = 3;
            c.options = options, c.options.transposed = transposed, c.options.way = way;
            expect_plane(c, 2e-5);
          }
  };
  with({3, 3}, {.padding = {1}});
  with({3, 3}, {.padding = {1}, .groups = 2});
  with({3, 3}, {.padding = {2}, .dilation = {2}});
  with({3, 3}, {.stride = {2}, .padding = {1}});
  with({3, 3}, {.padding = {1}, .winograd = Winograd::f4});
  with({3, 3, 3}, {.padding = {1}});
  with({3}, {.padding = {1}, .groups = 2});
}

}  // namespace
}  // namespace quatrain
