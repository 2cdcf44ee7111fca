#include "bench/pairs.h"
#include "cli/bench_run.h"
#include "cli/commands.h"

namespace quatrain::cli {

int bench_pairs_command(const BenchPairsArguments& a) {
  std::vector<bench::PairsCase> cases;
  for (const auto& algebra : a.algebras)
    for (const int threads : threads_or_default(a.threads))
      for (const auto& pass : a.passes)
        for (const int64_t width : a.widths) {
          check_sizes(algebra, {{"--sizes", width}});
          if (a.model == "encoder") check_sizes(algebra, {{"--word-width", a.word_width}});
          cases.push_back({.model = a.model,
                           .algebra = algebra,
                           .width = width,
                           .word_width = a.word_width,
                           .gates = a.gates,
                           .batch = a.batch,
                           .words = a.words,
                           .threads = threads,
                           .training = pass == "training"});
        }
  return run_bench(bench::pairs(cases, a.seconds), a.json);
}

}  // namespace quatrain::cli
