// The engine's way without transforms, forced, against H in float64; epilogues.

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
using test::convolution_of_H;
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

// Rows that are cut, of signals and of images, in all passes and both orders.
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
      }
}

// Without transforms the error is that of sums of a row of the kernel, not of all places at once
// (docs/engine.md).
TEST(ConvolutionPlane, DirectIsExact) {
  torch::manual_seed(3);
  const at::Tensor x = torch::randn({4, 4 * 64, 8, 8}).contiguous(at::MemoryFormat::ChannelsLast),
                   F = torch::randn({4, 64, 64, 3, 3});
  ConvolutionOptions options{.padding = {1}, .way = Way::factored, .winograd = Winograd::none};
  const at::Tensor y = ops::convolution(x, F, {}, {"quaternion", {}, {}}, options).to(at::kDouble);
  options.way = Way::materialised;
  const at::Tensor exact =
      ops::convolution(x.to(at::kDouble), F.to(at::kDouble), {}, {"quaternion", {}, {}}, options);
  EXPECT_LT(((y - exact).norm() / exact.norm()).item<double>(), 4.5e-7);
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
  for (const std::string algebra : {"learned", "factored"})
    for (const int64_t n : {3, 4})
      for (const bool transposed : {false, true}) {
        SCOPED_TRACE(algebra + ", n = " + std::to_string(n) + (transposed ? ", transposed" : ""));
        torch::manual_seed(12);
        const auto f64 = torch::kDouble;
        const at::Tensor A =
            algebra == "learned" ? torch::randn({n, n, n}, f64) : torch::randn({3, n, 6}, f64);
        const at::Tensor x = torch::randn({4, n * 16, 12, 12}, f64), F = torch::randn({n, 16, 16, 3, 3}, f64);
        const ConvolutionOptions options{.padding = {1}, .transposed = transposed};
        const auto run = [&](torch::Dtype type, bool reference) {
          const at::Tensor a = A.to(type).requires_grad_(), x_ = x.to(type).requires_grad_(),
                           F_ = F.to(type).requires_grad_();
          const at::Tensor table =
              algebra == "learned" ? a : torch::einsum("ir,br,ar->iab", {a[0], a[1], a[2]});
          const at::Tensor y = reference ? convolution_of_H(x_, F_, {}, table, options)
                                         : ops::convolution(x_, F_, {}, {algebra, a, {}}, options);
          auto results = torch::autograd::grad({(y * y.detach()).sum()}, {x_, F_, a});
          results.push_back(y);
          return results;
        };
        const auto expected = run(f64, true), got = run(torch::kFloat, false);
        for (size_t i = 0; i < 4; ++i) EXPECT_LT(relative_error(got[i], expected[i]), 2e-5) << i;
      }
}

TEST(ConvolutionPlane, EpiloguesAreTheSumOfTheirParts) {
  const auto f64 = torch::kDouble;
  for (const Winograd winograd : {Winograd::none, Winograd::f2})
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast})
      for (const std::string activation : {"identity", "relu", "tanh", "gelu"})
        for (const int parts : {0, 1, 2, 3, 4, 5, 6, 7})
          for (const bool trains : {false, true}) {
            SCOPED_TRACE(activation + ", parts " + std::to_string(parts));
            torch::manual_seed(14);
            const at::Tensor x = torch::randn({2, 40, 6, 5}).contiguous(format),
                             F = torch::randn({4, 9, 10, 3, 3}) / 10;
            const at::Tensor scale = torch::randn({36}), shift = torch::randn({36}),
                             residual = torch::randn({2, 36, 6, 5});
            const ConvolutionOptions options{.padding = {1}, .way = Way::factored, .winograd = winograd};
            at::Tensor expected =
                convolution_of_H(x.to(f64), F.to(f64), {}, test::table_of("quaternion"), options);
            if (parts & 1) expected = expected * scale.view({36, 1, 1});
            if (parts & 2) expected = expected + shift.view({36, 1, 1});
            if (parts & 4) expected = expected + residual;
            expected = ops::activation(activation)(expected);
            const auto part = [&](int bit, const at::Tensor& t) { return parts & bit ? t : at::Tensor(); };
            const at::Tensor y = ops::convolution_with_epilogue(
                x, F.clone().requires_grad_(trains), {"quaternion", {}, {}},
                {part(1, scale), part(2, shift), part(4, residual), activation}, options);
            EXPECT_LT(relative_error(y, expected), 3e-6);
            EXPECT_TRUE(y.is_contiguous(format));
            EXPECT_EQ(y.requires_grad(), trains);
          }
}

TEST(ConvolutionPlane, EpiloguesFinishEveryPhase) {
  constexpr auto f64 = torch::kDouble;
  for (const bool deep : {false, true})
    for (const bool strided : {false, true})
      for (const bool last : {false, true})
        for (const std::string activation : {"identity", "relu", "gelu"}) {
          SCOPED_TRACE(activation + (deep ? ", three axes" : "") + (strided ? ", stride 2" : ""));
          torch::manual_seed(16);
          std::vector<int64_t> sizes{2, 40, 6, 5}, kernel{4, 10, 9, 3, 3};
          if (deep) sizes.insert(sizes.begin() + 2, 4), kernel.push_back(3);
          const at::Tensor x = torch::randn(sizes).contiguous(!last  ? at::MemoryFormat::Contiguous
                                                              : deep ? at::MemoryFormat::ChannelsLast3d
                                                                     : at::MemoryFormat::ChannelsLast),
                           F = torch::randn(kernel), scale = torch::randn({36}), shift = torch::randn({36});
          ConvolutionOptions options{.padding = {1}, .transposed = true, .way = Way::factored};
          if (strided) options.stride = {2};
          if (strided)
            options.output_padding = deep ? std::vector<int64_t>{0, 1, 0} : std::vector<int64_t>{1, 0};
          const at::Tensor y =
              convolution_of_H(x.to(f64), F.to(f64), {}, test::table_of("quaternion"), options);
          std::vector<int64_t> channels(static_cast<size_t>(x.dim()) - 1, 1);
          channels[0] = 36;
          const at::Tensor residual = torch::randn(y.sizes());
          const at::Tensor expected =
              ops::activation(activation)(y * scale.view(channels) + shift.view(channels) + residual);
          const at::Tensor got = ops::convolution_with_epilogue(
              x, F, {"quaternion", {}, {}}, {scale, shift, residual, activation}, options);
          EXPECT_LT(relative_error(got, expected), 3e-6);
          EXPECT_TRUE(got.is_contiguous(x.suggest_memory_format()));
        }
}

TEST(ConvolutionPlane, WhatTheEngineDoesNotMultiplyIsFinishedToo) {
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast})
    for (const int64_t kernel : {1, 3})
      for (const std::string algebra : {"real", "quaternion"})
        for (const std::string activation : {"identity", "relu", "gelu"})
          for (const bool whole : {false, true}) {
            SCOPED_TRACE(algebra + ", " + activation + ", kernel " + std::to_string(kernel));
            constexpr auto f64 = at::kDouble;
            torch::manual_seed(15);
            const int64_t n = algebra == "real" ? 1 : 4;
            const at::Tensor x = torch::randn({2, 8, 6, 5}).contiguous(format), shift = torch::randn({12}),
                             F = torch::randn({n, 12 / n, 8 / n, kernel, kernel}) / 10;
            const ConvolutionOptions options{.padding = {kernel / 2}, .way = Way::materialised};
            ops::ConvolutionEpilogue epilogue;
            epilogue.shift = shift, epilogue.activation = activation;
            at::Tensor expected =
                convolution_of_H(x.to(f64), F.to(f64), {}, test::table_of(algebra), options);
            if (whole) {
              epilogue.scale = torch::randn({12}), epilogue.residual = torch::randn({2, 12, 6, 5});
              expected = expected * epilogue.scale.view({12, 1, 1}) + epilogue.residual;
            }
            expected = ops::activation(activation)(expected + shift.view({12, 1, 1}));
            const at::Tensor before = x.clone();
            const at::Tensor y = ops::convolution_with_epilogue(x, F, {algebra, {}, {}}, epilogue, options);
            EXPECT_LT(relative_error(y, expected), 3e-6);
            EXPECT_TRUE(y.is_contiguous(format));
            EXPECT_TRUE(x.equal(before));
          }
}

}  // namespace
}  // namespace quatrain
