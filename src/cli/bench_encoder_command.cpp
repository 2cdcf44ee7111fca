#include "bench/encoder.h"
#include "cli/bench_run.h"
#include "cli/commands.h"
#include "nn/check.h"
#include "quatrain/nn/algebra_spec.h"

namespace quatrain::cli {
namespace {

void check_width(const BenchEncoderArguments& a, const std::string& name) {
  try {
    const nn::AlgebraSpec algebra(name);
    nn::require_divisible("bench", "--width", a.width, algebra.n * a.heads, "n * heads");
    nn::require_divisible("bench", "--feed-forward", a.feed_forward, algebra.n, "n");
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

}  // namespace

// A batch of texts, a step that decodes one word, and training.
int bench_encoder_command(const BenchEncoderArguments& a) {
  std::vector<bench::EncoderCase> cases;
  for (const auto& algebra : a.algebras) {
    check_width(a, algebra);
    for (const int threads : threads_or_default(a.threads)) {
      bench::EncoderCase one{algebra, a.width,   a.heads, a.feed_forward, a.sequence,
                             a.batch, a.dropout, threads, false};
      cases.push_back(one);
      one.batch = one.sequence = 1;
      cases.push_back(one);
      one.batch = a.batch, one.sequence = a.sequence, one.training = true;
      cases.push_back(one);
    }
  }
  return run_bench(bench::encoder(cases, a.seconds), a.json);
}

}  // namespace quatrain::cli
