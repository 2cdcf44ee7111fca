#include "bench/convolution.h"
#include "bench/linear.h"
#include "cli/bench_run.h"
#include "cli/commands.h"

namespace quatrain::cli {

int bench_convolution_command(const BenchConvolutionArguments& a) {
  if (a.images.size() != 1 && a.images.size() != a.channels.size())
    throw UsageError("bench: --image must be one size, or one for each of --channels, got " +
                     std::to_string(a.images.size()) + " for " + std::to_string(a.channels.size()));
  std::vector<bench::ConvolutionCase> cases;
  for (const auto& algebra : a.algebras)
    for (const int threads : threads_or_default(a.threads))
      for (const auto& pass : a.passes)
        for (size_t i = 0; i < a.channels.size(); ++i)
          for (const int64_t batch : a.batches)
            for (const auto& winograd : a.winograd) {
              if (winograd != "auto" && winograd != "none" && (a.kernel != 3 || a.stride != 1))
                throw UsageError("bench: --winograd " + winograd + " is of --kernel 3 and --stride 1 alone");
              check_sizes(algebra, {{"--channels", a.channels[i]}});
              cases.push_back({.algebra = algebra,
                               .channels = a.channels[i],
                               .image = a.images[a.images.size() == 1 ? 0 : i],
                               .batch = batch,
                               .depth = a.depth,
                               .kernel = a.kernel,
                               .stride = a.stride,
                               .winograd = winograd,
                               .dtype = bench::dtype_of(a.dtype),
                               .channels_last = a.order == "last",
                               .threads = threads,
                               .training = pass == "training"});
            }
  return run_bench(bench::convolution(cases, a.seconds), a.json);
}

}  // namespace quatrain::cli
