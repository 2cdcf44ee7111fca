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
          cases.push_back({a.model, algebra, width, a.word_width, a.gates, a.batch, a.words, threads,
                           pass == "training"});
        }
  return run_bench(bench::pairs(cases, a.seconds), a.json);
}

}  // namespace quatrain::cli
