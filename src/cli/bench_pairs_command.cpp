#include "bench/pairs.h"
#include "cli/bench_run.h"
#include "cli/commands.h"
#include "nn/check.h"
#include "quatrain/nn/algebra_spec.h"

namespace quatrain::cli {

int bench_pairs_command(const BenchPairsArguments& a) {
  std::vector<bench::PairsCase> cases;
  for (const auto& algebra : a.algebras)
    for (const int threads : threads_or_default(a.threads))
      for (const auto& pass : a.passes)
        for (const int64_t width : a.widths) {
          try {
            const int64_t n = nn::AlgebraSpec(algebra).n;
            nn::require_divisible("bench", "--sizes", width, n, "n");
            if (a.model == "encoder") nn::require_divisible("bench", "--word-width", a.word_width, n, "n");
          } catch (const std::invalid_argument& error) {
            throw UsageError(error.what());
          }
          cases.push_back({a.model, algebra, width, a.word_width, a.gates, a.batch, a.words, threads,
                           pass == "training"});
        }
  return run_bench(bench::pairs(cases, a.seconds), a.json);
}

}  // namespace quatrain::cli
