#include "cli/bench_run.h"

#include <ATen/Parallel.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/report.h"
#include "cli/commands.h"
#include "cli/json_file.h"
#include "cli/stop.h"
#include "nn/check.h"
#include "quatrain/nn/algebra_spec.h"

namespace quatrain::cli {

std::vector<int> threads_or_default(const std::vector<int>& asked) {
  return asked.empty() ? std::vector<int>{at::get_num_threads()} : asked;
}

void check_sizes(const std::string& algebra, const std::vector<AskedSize>& sizes) {
  try {
    const nn::AlgebraSpec spec(algebra);
    for (const auto& [option, size, heads, groups] : sizes)
      if (heads > 0)
        nn::require_divisible("bench", option, size, spec.n * heads, "n * heads");
      else if (groups > 1)
        nn::require_divisible("bench", option, size, spec.n * groups, "n * groups");
      else
        nn::require_divisible("bench", option, size, spec.n, "n");
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

int run_bench(const bench::Subject& subject, const std::string& json) {
  watch_for_stop();
  const bool live = isatty(STDERR_FILENO) != 0;
  bench::Watch watch;
  watch.round = throw_if_stopped;
  watch.step = [live](size_t step, size_t steps) {
    throw_if_stopped();
    if (live) std::fprintf(stderr, "\rmeasuring %zu of %zu\033[K", step + 1, steps);
  };
  check_output(json);
  std::vector<bench::Row> rows;
  bool stopped = false;
  try {
    bench::measure(subject, rows, true, watch);
  } catch (const Stopped&) {
    stopped = true;
  }
  if (live) std::fprintf(stderr, "\r\033[K");
  if (!json.empty()) write_json(bench::to_json(rows), json);
  if (json != "-") std::fputs(bench::report(subject, rows, isatty(STDOUT_FILENO) != 0).c_str(), stdout);
  if (stopped) throw Stopped{};
  return kSuccess;
}

}  // namespace quatrain::cli
