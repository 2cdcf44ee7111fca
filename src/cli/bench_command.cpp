#include <ATen/Parallel.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "cli/bench.h"
#include "cli/commands.h"
#include "cli/json_file.h"
#include "cli/stop.h"

namespace quatrain::cli {
namespace {

at::ScalarType parse_dtype(const std::string& name) {
  static const std::map<std::string, at::ScalarType> known{
      {"float32", at::kFloat}, {"float64", at::kDouble}, {"bfloat16", at::kBFloat16}, {"float16", at::kHalf}};
  return known.at(name);
}

/// "1024" or "512x2048", inputs first.
std::pair<int64_t, int64_t> parse_size(const std::string& text) {
  const auto fail = [&] {
    throw std::invalid_argument(
        "bench: a size must be a width, like 1024, or IN x OUT, like 512x2048, got '" + text + "'");
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
  watch_for_stop();
  const auto threads =
      arguments.threads.empty() ? std::vector<int>{at::get_num_threads()} : arguments.threads;
  std::vector<LayerCase> cases;
  for (const auto& algebra : arguments.algebras)
    for (const auto& dtype : arguments.dtypes)
      for (const int count : threads)
        for (const auto& pass : arguments.passes)
          for (const auto& size : arguments.sizes)
            for (const int64_t batch : arguments.batches) {
              LayerCase one;
              std::tie(one.in, one.out) = parse_size(size);
              one.algebra = algebra, one.batch = batch, one.dtype = parse_dtype(dtype), one.threads = count;
              one.training = pass == "training";
              cases.push_back(one);
            }
  std::vector<LayerResult> results;
  const bool live = isatty(STDERR_FILENO) != 0;
  for (const auto& one : cases) {
    if (live) std::fprintf(stderr, "\r%zu of %zu cases\033[K", results.size() + 1, cases.size());
    results.push_back(measure_layer(one, arguments.seconds, true));
  }
  if (live) std::fprintf(stderr, "\r\033[K");
  if (!arguments.json.empty()) write_json(to_json(results), arguments.json);
  if (arguments.json != "-") std::fputs(report(results, isatty(STDOUT_FILENO) != 0).c_str(), stdout);
  return kSuccess;
}

}  // namespace quatrain::cli
