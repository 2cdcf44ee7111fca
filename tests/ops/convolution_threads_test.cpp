// Convolutions on a CPU give the same bits on any number of threads, in all three passes.

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "quatrain/conv_ops.h"

namespace quatrain {
namespace {

using ops::ConvolutionOptions;
using ops::Way;
using ops::Winograd;

TEST(ConvolutionThreads, DoNotChangeABit) {
  const int before = at::get_num_threads();
  for (const int64_t depth : {0, 3})  // 0: two axes
    for (const auto& [image, stride] : {std::pair{3, 1}, {14, 1}, {3, 2}, {14, 2}})
      for (const Winograd winograd : {Winograd::none, Winograd::f2, Winograd::f4})
        for (const bool last : {false, true}) {
          if (stride > 1 && winograd != Winograd::none) continue;
          torch::manual_seed(13);
          std::vector<int64_t> sizes{3, 4 * 40, image, image}, kernel{4, 136, 40, 3, 3};
          if (depth) sizes.insert(sizes.begin() + 2, depth), kernel.push_back(3);
          const at::Tensor x = torch::randn(sizes).contiguous(!last   ? at::MemoryFormat::Contiguous
                                                              : depth ? at::MemoryFormat::ChannelsLast3d
                                                                      : at::MemoryFormat::ChannelsLast),
                           F = torch::randn(kernel);
          const ConvolutionOptions options{
              .stride = {stride}, .padding = {1}, .way = Way::factored, .winograd = winograd};
          std::vector<std::vector<at::Tensor>> results;
          for (const int threads : {1, 2, 3}) {
            at::set_num_threads(threads);
            const at::Tensor y = ops::convolution(x, F, {}, {"quaternion", {}, {}}, options);
            const auto [dx, dF, dA] = ops::convolution_backward(
                torch::ones_like(y), x, F, {"quaternion", {}, {}}, options, {true, true, false});
            results.push_back({y, dx, dF});
          }
          at::set_num_threads(before);
          for (size_t i = 1; i < results.size(); ++i)
            for (size_t k = 0; k < 3; ++k)
              EXPECT_TRUE(torch::equal(results[0][k], results[i][k])) << i << ", " << k;
        }
}

// The same for groups, dilation and large kernels.
TEST(ConvolutionThreads, DoNotMatterToOptionsEither) {
  const int before = at::get_num_threads();
  for (const ConvolutionOptions& given : std::vector<ConvolutionOptions>{
           {.stride = {1}, .padding = {1}, .groups = 2},
           {.stride = {2}, .padding = {2}, .dilation = {2}, .groups = 4},
           {.stride = {1}, .padding = {3}, .dilation = {3}},
           {.stride = {2, 1}, .padding = {1, 2}, .transposed = true, .output_padding = {1, 0}, .groups = 2}})
    for (const int64_t kernel : {3, 5}) {
      SCOPED_TRACE(std::to_string(given.groups) + " groups, dilation " + std::to_string(given.dilation[0]) +
                   ", kernel " + std::to_string(kernel));
      ConvolutionOptions options = given;
      options.way = Way::factored;
      torch::manual_seed(21);
      const int64_t units = 24;
      const at::Tensor x = torch::randn({3, 4 * units, 11, 9}),
                       F = torch::randn({4, units, units / options.groups, kernel, kernel});
      std::vector<std::vector<at::Tensor>> results;
      for (const int threads : {1, 2, 3, 8}) {
        at::set_num_threads(threads);
        const at::Tensor y = ops::convolution(x, F, {}, {"quaternion", {}, {}}, options);
        const auto [dx, dF, dA] = ops::convolution_backward(torch::cos(y), x, F, {"quaternion", {}, {}},
                                                            options, {true, true, false});
        results.push_back({y, dx, dF});
      }
      at::set_num_threads(before);
      for (size_t t = 1; t < results.size(); ++t)
        for (size_t k = 0; k < 3; ++k)
          EXPECT_TRUE(torch::equal(results[0][k], results[t][k])) << t << ", " << k;
    }
}

// Rows so long that panels are cut out of them, at places that depend on the number of threads; and an image
// has the bits alone that it has among others.
TEST(ConvolutionThreads, NorDoPanelsOfLongRows) {
  const int before = at::get_num_threads();
  for (const int64_t width : {257, 530})
    for (const int64_t stride : {1, 2}) {
      torch::manual_seed(5);
      const at::Tensor x = torch::randn({3, 4 * 20, 3, width}).contiguous(at::MemoryFormat::ChannelsLast),
                       F = torch::randn({4, 70, 20, 3, 3});
      const ConvolutionOptions options{
          .stride = {stride}, .padding = {1}, .way = Way::factored, .winograd = Winograd::none};
      std::vector<std::vector<at::Tensor>> results;
      for (const int threads : {1, 2, 3}) {
        at::set_num_threads(threads);
        const at::Tensor y = ops::convolution(x, F, {}, {"quaternion", {}, {}}, options);
        const auto [dx, dF, dA] = ops::convolution_backward(torch::cos(y), x, F, {"quaternion", {}, {}},
                                                            options, {true, false, false});
        results.push_back({y, dx});
        for (int64_t image = 0; image < 3; ++image)
          EXPECT_TRUE(torch::equal(
              y[image], ops::convolution(x.narrow(0, image, 1), F, {}, {"quaternion", {}, {}}, options)[0]))
              << width << ", " << stride << ", " << threads << " threads, image " << image;
      }
      at::set_num_threads(before);
      for (size_t t = 1; t < results.size(); ++t)
        for (size_t k = 0; k < 2; ++k)
          EXPECT_TRUE(torch::equal(results[0][k], results[t][k])) << width << ", " << t << ", " << k;
    }
}

}  // namespace
}  // namespace quatrain
