#include <algorithm>

#include "bench/convolution.h"
#include "bench/linear.h"
#include "cli/bench_run.h"
#include "cli/commands.h"

namespace quatrain::cli {

int bench_convolution_command(const BenchConvolutionArguments& a) {
  if (a.images.size() > 1 && a.images.size() != a.channels.size())
    throw UsageError("bench: --image must be one size, or one for each of --channels, got " +
                     std::to_string(a.images.size()) + " for " + std::to_string(a.channels.size()));
  if (a.depth > 0 && a.axes != 0 && a.axes != 3)
    throw UsageError("bench: --depth is of images of three axes, not of --axes " + std::to_string(a.axes));
  const int64_t axes = a.axes > 0 ? a.axes : a.depth > 0 ? 3 : 2;
  constexpr int64_t kLongestSide = 1 << 12;
  for (const int64_t image : a.images)
    if (axes > 1 && image > kLongestSide)
      throw UsageError("bench: --image must be at most " + std::to_string(kLongestSide) +
                       " without --axes 1, got " + std::to_string(image));
  const bool transforms = a.kernel == 3 && a.stride == 1 && a.dilation == 1 && axes > 1;
  std::vector<bench::ConvolutionCase> cases;
  for (const auto& algebra : a.algebras)
    for (const int threads : threads_or_default(a.threads))
      for (const auto& pass : a.passes)
        for (size_t i = 0; i < a.channels.size(); ++i)
          for (const int64_t batch : a.batches)
            for (const auto& winograd : a.winograd) {
              if (winograd != "auto" && winograd != "none" && !transforms)
                throw UsageError("bench: --winograd " + winograd +
                                 " is of --kernel 3 and --stride 1 alone, without --dilation and --axes 1");
              const int64_t image = a.images.empty() ? std::max<int64_t>(1, 2048 / a.channels[i])
                                                     : a.images[a.images.size() == 1 ? 0 : i];
              const int64_t inputs = a.in_channels > 0 ? a.in_channels : a.channels[i];
              check_sizes(algebra, {{.option = "--channels", .size = a.channels[i], .groups = a.groups}});
              check_sizes(algebra, {{.option = "--in-channels", .size = inputs, .groups = a.groups}});
              cases.push_back({.algebra = algebra,
                               .in_channels = inputs,
                               .channels = a.channels[i],
                               .image = image,
                               .batch = batch,
                               .axes = axes,
                               .depth = a.depth > 0 ? a.depth : image,
                               .kernel = a.kernel,
                               .stride = a.stride,
                               .dilation = a.dilation,
                               .groups = a.groups,
                               .winograd = winograd,
                               .dtype = bench::dtype_of(a.dtype),
                               .channels_last = a.order == "last",
                               .threads = threads,
                               .training = pass == "training"});
            }
  return run_bench(bench::convolution(cases, a.seconds), a.json);
}

}  // namespace quatrain::cli
