#include <stdexcept>
#include <tuple>

#include "bench/linear.h"
#include "cli/bench_run.h"
#include "cli/commands.h"

namespace quatrain::cli {
namespace {

/// "1024" or "512x2048", inputs first.
std::pair<int64_t, int64_t> parse_size(const std::string& text) {
  const auto fail = [&] {
    throw UsageError("bench: a size must be a width, like 1024, or IN x OUT, like 512x2048, got '" + text +
                     "'");
  };
  size_t used = 0;
  int64_t in = 0, out = 0;
  try {
    in = out = std::stoll(text, &used);
    if (used < text.size()) {
      if (text[used] != 'x') fail();
      const std::string rest = text.substr(used + 1);
      out = std::stoll(rest, &used);
      if (used < rest.size()) fail();
    }
  } catch (const std::logic_error&) {
    fail();
  }
  if (in < 1 || out < 1 || in > 1 << 16 || out > 1 << 16) fail();
  return {in, out};
}

}  // namespace

int bench_linear_command(const BenchLinearArguments& arguments) {
  std::vector<bench::LinearCase> cases;
  for (const auto& algebra : arguments.algebras)
    for (const auto& dtype : arguments.dtypes)
      for (const int count : threads_or_default(arguments.threads))
        for (const auto& pass : arguments.passes)
          for (const auto& size : arguments.sizes)
            for (const int64_t batch : arguments.batches) {
              bench::LinearCase one;
              std::tie(one.in, one.out) = parse_size(size);
              one.algebra = algebra, one.batch = batch, one.dtype = bench::dtype_of(dtype),
              one.threads = count;
              one.training = pass == "training";
              check_sizes(one.algebra, {{"the size", one.in}, {"the size", one.out}});
              cases.push_back(one);
            }
  return run_bench(bench::linear(cases, arguments.seconds, true), arguments.json);
}

}  // namespace quatrain::cli
