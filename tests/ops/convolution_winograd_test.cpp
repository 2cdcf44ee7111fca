// Winograd's transforms, each forced, against H in float64; and where they are taken.

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "ops/convolution_reference.h"
#include "quatrain/conv_ops.h"

namespace quatrain {
namespace {

using ops::ConvolutionOptions;
using ops::Way;
using ops::Winograd;
using test::expect_plane;
using test::PlaneCase;

TEST(ConvolutionWinograd, OfEverySizeOfImage) {
  for (const Winograd winograd : {Winograd::f2, Winograd::f4})
    for (const auto& [height, width] : {std::pair{1, 1}, {2, 5}, {4, 4}, {7, 9}, {8, 8}, {13, 3}, {2, 140}})
      for (const bool transposed : {false, true}) {
        SCOPED_TRACE(std::string(ops::name(winograd)) + ", " + std::to_string(height) + " x " +
                     std::to_string(width));
        PlaneCase c{.height = height, .width = width};
        c.options.winograd = winograd, c.options.transposed = transposed;
        expect_plane(c, winograd == Winograd::f2 ? 2e-6 : 2e-5);
      }
}

TEST(ConvolutionWinograd, OfEveryPaddingAndGroup) {
  for (const Winograd winograd : {Winograd::f2, Winograd::f4})
    for (const int64_t groups : {1, 2, 4})
      for (const int64_t padding : {0, 1, 2, 3}) {
        SCOPED_TRACE(std::to_string(groups) + " groups, padding " + std::to_string(padding));
        PlaneCase c{.batch = 3};
        c.options.winograd = winograd, c.options.groups = groups, c.options.padding = {padding, 1};
        expect_plane(c, 2e-5);
      }
}

TEST(ConvolutionWinograd, InFloat64) {
  for (const Winograd winograd : {Winograd::f2, Winograd::f4})
    for (const auto& [height, width] : {std::pair{1, 2}, {2, 5}, {7, 9}, {2, 140}, {40, 40}})
      for (const auto& [down, across] : {std::pair{0, 1}, {1, 1}, {2, 0}})
        for (const bool transposed : {false, true}) {
          if (height + 2 * (transposed ? 2 - down : down) < 3 ||
              width + 2 * (transposed ? 2 - across : across) < 3)
            continue;
          SCOPED_TRACE(std::string(ops::name(winograd)) + ", " + std::to_string(height) + " x " +
                       std::to_string(width) + (transposed ? ", transposed" : ""));
          PlaneCase c{.batch = 3, .height = height, .width = width, .type = torch::kDouble};
          c.options.winograd = winograd, c.options.transposed = transposed,
          c.options.padding = {down, across};
          expect_plane(c, 1e-12);
        }
}

// Planes behind each other: alone and many, met by some or all of the kernel's planes, in panels that end
// within an image and after several.
TEST(ConvolutionWinograd, OfThreeAxes) {
  for (const Winograd winograd : {Winograd::f2, Winograd::f4})
    for (const auto& [depth, planes, padding, dilation] : {std::tuple{1, 3, 1, 1},
                                                           {2, 3, 1, 1},
                                                           {9, 3, 1, 1},
                                                           {5, 2, 0, 1},
                                                           {4, 1, 0, 1},
                                                           {4, 1, 2, 1},
                                                           {3, 1, 0, 2},
                                                           {6, 3, 3, 2},
                                                           {7, 3, 0, 3},
                                                           {2, 4, 5, 3},
                                                           {25, 3, 1, 1}})
      for (const auto& [height, width] : {std::pair{4, 4}, {3, 5}, {2, 140}})
        for (const bool transposed : {false, true}) {
          if (width == 140 && depth > 2) continue;
          if (transposed && 2 * padding > depth - 1 + dilation * (planes - 1)) continue;  // nothing is left
          SCOPED_TRACE(std::string(ops::name(winograd)) + ", depth " + std::to_string(depth) + ", kernel's " +
                       std::to_string(planes) + ", " + std::to_string(height) + " x " +
                       std::to_string(width) + (transposed ? ", transposed" : ""));
          PlaneCase c{.height = height, .width = width, .kernel = {planes, 3, 3}, .depth = depth};
          c.options.winograd = winograd, c.options.transposed = transposed;
          c.options.padding = {padding, 1, 1}, c.options.dilation = {dilation, 1, 1};
          if (transposed && dilation > 1) c.options.output_padding = {1, 0, 0};
          c.options.groups = depth == 2 ? 2 : 1;
          expect_plane(c, winograd == Winograd::f2 ? 2e-6 : 2e-5);
        }
}

TEST(ConvolutionWinograd, GuardsChoose) {
  const at::Tensor x = torch::randn({2, 64, 8, 8}), F = torch::randn({4, 16, 16, 3, 3});
  const auto run = [&](Winograd winograd) {
    return ops::convolution(x, F, {}, {"quaternion", {}, {}}, {.padding = {1}, .winograd = winograd});
  };
  const at::Tensor by_f2 = run(Winograd::f2), by_f4 = run(Winograd::f4), direct = run(Winograd::none);
  EXPECT_TRUE(torch::equal(run(Winograd::automatic), by_f2));
  EXPECT_FALSE(torch::equal(by_f2, by_f4));
  EXPECT_FALSE(torch::equal(by_f2, direct));
  {
    const ops::WinogradGuard guard(Winograd::f4);
    EXPECT_TRUE(torch::equal(run(Winograd::automatic), by_f4));
    EXPECT_TRUE(torch::equal(run(Winograd::none), direct));
    const ops::WayGuard way(Way::materialised);
    EXPECT_FALSE(torch::equal(run(Winograd::automatic), by_f4));
  }
  {
    using at::Float32Backend, at::Float32Op, at::Float32Precision;
    auto& context = at::globalContext();
    const auto before = context.float32Precision(Float32Backend::MKLDNN, Float32Op::CONV);
    context.setFloat32Precision(Float32Backend::MKLDNN, Float32Op::CONV, Float32Precision::TF32);
    EXPECT_TRUE(torch::equal(run(Winograd::automatic), by_f4));
    EXPECT_TRUE(torch::equal(run(Winograd::f2), by_f2));
    context.setFloat32Precision(Float32Backend::MKLDNN, Float32Op::CONV, before);
    EXPECT_TRUE(torch::equal(run(Winograd::automatic), by_f2));
  }
  const at::Tensor x64 = torch::randn({8, 64, 8, 8}, torch::kDouble), F64 = F.to(torch::kDouble);
  const auto run64 = [&](Way way, Winograd winograd) {
    return ops::convolution(x64, F64, {}, {"quaternion", {}, {}},
                            {.padding = {1}, .way = way, .winograd = winograd});
  };
  EXPECT_TRUE(torch::equal(run64(Way::automatic, Winograd::automatic), run64(Way::factored, Winograd::f2)));
  EXPECT_FALSE(
      torch::equal(run64(Way::automatic, Winograd::automatic), run64(Way::factored, Winograd::none)));
  EXPECT_FALSE(torch::equal(run64(Way::factored, Winograd::none), run64(Way::materialised, Winograd::none)));
  EXPECT_FALSE(torch::equal(run64(Way::factored, Winograd::f4), run64(Way::factored, Winograd::f2)));
  EXPECT_EQ(ops::parse_winograd("4x4"), Winograd::f4);
  EXPECT_THROW(ops::parse_winograd("3x3"), std::invalid_argument);
}

// What is asked for is taken by real layers too, whose default is H.
TEST(ConvolutionWinograd, TilesThatAreAskedForAreTaken) {
  for (const auto& [algebra, units] : {std::pair{"real", 9}, {"real", 2}, {"real", 70}, {"quaternion", 3}}) {
    const bool few = units < 9;
    const auto run = [&, algebra = algebra, units = units](Winograd winograd, Way way = Way::automatic) {
      torch::manual_seed(5);
      const int64_t n = algebra::get(algebra).n();
      const at::Tensor x = torch::randn({2, n * units, 6, 7}), F = torch::randn({n, units, units, 3, 3});
      return ops::convolution(x, F, {}, {algebra, {}, {}},
                              {.padding = {1}, .way = way, .winograd = winograd});
    };
    SCOPED_TRACE(std::string(algebra) + " of " + std::to_string(units));
    const at::Tensor H = run(Winograd::automatic);
    EXPECT_TRUE(run(Winograd::none).equal(H));
    EXPECT_TRUE(run(Winograd::f4, Way::materialised).equal(H));
    EXPECT_EQ(run(Winograd::f2).equal(H), few);
    EXPECT_EQ(run(Winograd::f4).equal(H), few);
    EXPECT_FALSE(run(Winograd::f4, Way::factored).equal(H));
    EXPECT_FALSE(run(Winograd::f4, Way::factored).equal(run(Winograd::f2, Way::factored)));
    EXPECT_FALSE(run(Winograd::f2, Way::factored).equal(run(Winograd::none, Way::factored)));
    EXPECT_EQ(run(Winograd::f4, Way::factored).equal(run(Winograd::f4)), !few);
    for (const Winograd winograd : {Winograd::f2, Winograd::f4, Winograd::none})
      for (const bool transposed : {false, true})
        for (const int64_t groups : {1, 3}) {
          if (units % groups != 0) continue;
          PlaneCase c{.algebra = algebra, .units_in = units, .units_out = 2 * units};
          c.options.winograd = winograd, c.options.transposed = transposed, c.options.groups = groups;
          expect_plane(c, winograd == Winograd::f4 ? 2e-5 : 2e-6);
        }
  }
}

// The convolutions that go without, as conv_ops.h lists them.
TEST(ConvolutionWinograd, WhatHasNoTransformsGoesWithout) {
  const auto same = [](std::vector<int64_t> kernel, ConvolutionOptions options, at::ScalarType type,
                       const char* algebra = "quaternion") {
    torch::manual_seed(6);
    const int64_t n = algebra::get(algebra).n();
    std::vector<int64_t> sizes{n, 32, 32 / options.groups}, image{2, 32 * n};
    for (const int64_t places : kernel) sizes.push_back(places), image.push_back(7);
    const at::Tensor x = torch::randn(image).to(type), F = torch::randn(sizes).to(type);
    const auto run = [&](Winograd winograd) {
      options.winograd = winograd;
      return ops::convolution(x, F, {}, {algebra, {}, {}}, options);
    };
    return run(Winograd::f4).equal(run(Winograd::none));
  };
  for (const char* algebra : {"quaternion", "real"})
    for (const Way way : {Way::automatic, Way::factored})
      for (const at::ScalarType type : {torch::kFloat, torch::kDouble}) {
        EXPECT_FALSE(same({3, 3}, {.padding = {1}, .way = way}, type, algebra));
        EXPECT_TRUE(same({3, 3}, {.stride = {2}, .way = way}, type, algebra));
        EXPECT_TRUE(same({3, 3}, {.dilation = {2}, .way = way}, type, algebra));
        EXPECT_TRUE(same({3, 3}, {.padding = {3}, .way = way}, type, algebra));
        EXPECT_TRUE(same({3, 1}, {.way = way}, type, algebra));
        EXPECT_TRUE(same({3}, {.way = way}, type, algebra));
        EXPECT_EQ(same({3, 3}, {.groups = 2, .way = way}, type, algebra), type == torch::kDouble);
        EXPECT_EQ(same({3, 3, 3}, {.way = way}, type, algebra), type == torch::kDouble);
      }
  EXPECT_TRUE(same({3, 3}, {}, torch::kHalf));
}

}  // namespace
}  // namespace quatrain
