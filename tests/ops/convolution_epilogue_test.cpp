// Epilogues of convolutions on a CPU, against H in float64.

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "ops/convolution_reference.h"
#include "quatrain/conv_ops.h"
#include "quatrain/layer_ops.h"

namespace quatrain {
namespace {

using ops::ConvolutionOptions;
using ops::Way;
using ops::Winograd;
using test::convolution_of_H;
using test::PlaneCase;
using test::relative_error;

TEST(ConvolutionEpilogue, IsTheSumOfItsParts) {
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

TEST(ConvolutionEpilogue, FinishesEveryPhase) {
  constexpr auto f64 = torch::kDouble;
  for (const bool deep : {false, true})
    for (const bool strided : {false, true})
      for (const bool last : {false, true})
        for (const std::string activation : {"identity", "relu", "gelu"}) {
          SCOPED_TRACE(activation + (deep ? ", three axes" : "") + (strided ? ", stride 2" : ""));
          torch::manual_seed(16);
          std::vector<int64_t> sizes{2, 40, 6, 5}, kernel{4, 10, 9, 3, 3};
          if (deep) sizes.insert(sizes.begin() + 2, 4), kernel.push_back(3);
          const at::Tensor x = test::laid(torch::randn(sizes), last), F = torch::randn(kernel),
                           scale = torch::randn({36}), shift = torch::randn({36});
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
          EXPECT_TRUE(test::lies(got, last));
        }
}

// Signals have no memory format in torch. Results lie as they do all the same.
TEST(ConvolutionEpilogue, FinishesSignalsInTheirOwnOrder) {
  constexpr auto f64 = torch::kDouble;
  for (const auto type : {torch::kFloat, f64})
    for (const int64_t kernel : {1, 3})
      for (const bool transposed : {false, true})
        for (const bool last : {false, true})
          for (const std::string activation : {"relu", "gelu"}) {
            SCOPED_TRACE(activation + ", kernel " + std::to_string(kernel) + (last ? ", last" : ""));
            torch::manual_seed(17);
            const at::Tensor x = test::laid(torch::randn({2, 40, 30}, type), last),
                             F = transposed ? torch::randn({4, 10, 9, kernel}, type)
                                            : torch::randn({4, 9, 10, kernel}, type),
                             scale = torch::randn({36}, type), shift = torch::randn({36}, type);
            const ConvolutionOptions options{
                .stride = {2}, .padding = {kernel / 2}, .transposed = transposed};
            const at::Tensor y =
                convolution_of_H(x.to(f64), F.to(f64), {}, test::table_of("quaternion"), options);
            const at::Tensor residual = torch::randn(y.sizes(), type);
            const at::Tensor expected = ops::activation(activation)(
                y * scale.to(f64).view({36, 1}) + shift.to(f64).view({36, 1}) + residual.to(f64));
            const at::Tensor got = ops::convolution_with_epilogue(
                x, F, {"quaternion", {}, {}}, {scale, shift, residual, activation}, options);
            EXPECT_LT(relative_error(got, expected), type == f64 ? 1e-12 : 3e-6);
            EXPECT_TRUE(test::lies(got, last));
          }
}

TEST(ConvolutionEpilogue, FinishesWhatTheEngineDoesNotMultiply) {
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

// What is finished in a panel is found in it again, whatever a panel is.
TEST(ConvolutionEpilogue, OfEveryOption) {
  const auto with = [](std::vector<int64_t> kernel, ConvolutionOptions options, int64_t width = 9) {
    for (const std::string activation : {"identity", "relu", "gelu"}) {
      PlaneCase c{.units_out = 72, .width = width, .kernel = kernel, .depth = 4};
      options.way = Way::factored;
      c.options = options;
      SCOPED_TRACE(c10::str("kernel ", at::IntArrayRef(kernel), ", stride ", at::IntArrayRef(options.stride),
                            ", dilation ", at::IntArrayRef(options.dilation), ", groups ", options.groups,
                            ", width ", width, ", Winograd ", ops::name(options.winograd)));
      expect_epilogue(c, 7, activation, options.winograd == Winograd::f4 ? 2e-5 : 3e-6);
    }
  };
  for (const Winograd winograd : {Winograd::none, Winograd::f2, Winograd::f4}) {
    with({3, 3}, {.padding = {1}, .groups = 4, .winograd = winograd});
    with({3, 3, 3}, {.padding = {1}, .groups = 2, .winograd = winograd});
    with({3, 3}, {.padding = {1}, .winograd = winograd}, 270);
  }
  with({3, 3}, {.stride = {2}, .padding = {1}});
  with({3, 3}, {.stride = {2, 3}, .padding = {1}, .groups = 2});
  with({3, 3}, {.padding = {2}, .dilation = {2}});
  with({3, 3}, {.stride = {1, 2}, .padding = {1}}, 700);
  with({3, 3, 3}, {.stride = {2}, .padding = {1}});
  with({3}, {.padding = {1}, .groups = 2}, 270);
  with({4}, {.stride = {2}, .padding = {3}, .dilation = {2}}, 700);
}

// So few pixels that threads share the columns: each finishes its own, of every component.
TEST(ConvolutionEpilogue, OfSharedColumns) {
  const int before = at::get_num_threads();
  for (const Winograd winograd : {Winograd::none, Winograd::f2, Winograd::f4})
    for (const auto& [units, groups] : {std::pair<int64_t, int64_t>{136, 1}, {24, 3}, {140, 2}})
      for (const bool transposed : {false, true})
        for (const int threads : {2, 3})
          for (const int parts : {1, 2, 4, 7}) {
            SCOPED_TRACE(c10::str(units, " units, ", groups, " groups, ", threads, " threads, Winograd ",
                                  ops::name(winograd), transposed ? ", transposed" : ""));
            PlaneCase c{.units_in = 12, .units_out = units, .batch = 1, .height = 4, .width = 5};
            c.options.winograd = winograd, c.options.groups = groups, c.options.transposed = transposed;
            at::set_num_threads(threads);
            expect_epilogue(c, parts, "relu", winograd == Winograd::f4 ? 2e-5 : 3e-6);
            at::set_num_threads(before);
          }
}

// What is multiplied in float32 is finished there, and rounded once.
TEST(ConvolutionEpilogue, OfBfloat16IsRoundedOnce) {
  const ops::Bfloat16Guard widened(ops::Bfloat16::widened);
  const auto bf16 = torch::kBFloat16;
  for (const Winograd winograd : {Winograd::none, Winograd::f2})
    for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast})
      for (const std::string activation : {"identity", "relu", "tanh", "gelu"})
        for (const int parts : {0, 1, 2, 4, 7}) {
          SCOPED_TRACE(c10::str(activation, ", parts ", parts, ", Winograd ", ops::name(winograd)));
          torch::manual_seed(4);
          const at::Tensor x = torch::randn({2, 32, 9, 7}).to(bf16).contiguous(format),
                           F = torch::randn({4, 12, 8, 3, 3}).to(bf16), scale = torch::randn({48}).to(bf16),
                           shift = torch::randn({48}).to(bf16),
                           residual = torch::randn({2, 48, 9, 7}).to(bf16);
          const auto run = [&](at::ScalarType type) {
            const auto part = [&](int bit, const at::Tensor& t) {
              return parts & bit ? t.to(type) : at::Tensor();
            };
            return ops::convolution_with_epilogue(
                x.to(type), F.to(type), {"quaternion", {}, {}},
                {part(1, scale), part(2, shift), part(4, residual), activation},
                {.padding = {1}, .way = Way::factored, .winograd = winograd});
          };
          const at::Tensor rounded = run(bf16);
          EXPECT_EQ(rounded.scalar_type(), bf16);
          EXPECT_TRUE(rounded.is_contiguous(format));
          EXPECT_TRUE(rounded.equal(run(torch::kFloat).to(bf16)));
        }
}

}  // namespace
}  // namespace quatrain
