#include "bench/recurrent.h"
#include "cli/bench_run.h"
#include "cli/commands.h"

namespace quatrain::cli {

int bench_recurrent_command(const BenchRecurrentArguments& a) {
  std::vector<bench::RecurrentCase> cases;
  for (const auto& algebra : a.algebras)
    for (const auto& cell : a.cells)
      for (const int threads : threads_or_default(a.threads))
        for (const auto& pass : a.passes)
          for (const int64_t width : a.widths) {
            check_sizes(algebra, {{"--sizes", width}});
            if (a.projection > 0) {
              check_sizes(algebra, {{"--proj-size", a.projection}});
              if (cell != "lstm" || a.projection >= width)
                throw UsageError("bench: --proj-size must be below --sizes and goes with --cell lstm, got " +
                                 std::to_string(a.projection) + " with " + std::to_string(width) + " and " +
                                 cell);
            }
            for (const int64_t batch : a.batches)
              for (const auto& gates : a.gates)
                for (const auto& caches : a.caches)
                  cases.push_back({.algebra = algebra,
                                   .cell = cell,
                                   .width = width,
                                   .projection = a.projection,
                                   .batch = batch,
                                   .steps = a.steps,
                                   .gates = gates,
                                   .packed = a.lengths == "mixed",
                                   .emptied = caches == "emptied",
                                   .threads = threads,
                                   .training = pass == "training"});
          }
  return run_bench(bench::recurrent(cases, a.seconds), a.json);
}

}  // namespace quatrain::cli
