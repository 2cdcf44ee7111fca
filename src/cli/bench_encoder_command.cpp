#include "bench/encoder.h"
#include "cli/bench_run.h"
#include "cli/commands.h"

namespace quatrain::cli {

// A batch of texts, a step that decodes one word, and training.
int bench_encoder_command(const BenchEncoderArguments& a) {
  std::vector<bench::EncoderCase> cases;
  for (const auto& algebra : a.algebras) {
    check_sizes(algebra, {{"--width", a.width, a.heads}, {"--feed-forward", a.feed_forward}});
    for (const int threads : threads_or_default(a.threads)) {
      bench::EncoderCase one{.algebra = algebra,
                             .width = a.width,
                             .heads = a.heads,
                             .feed_forward = a.feed_forward,
                             .sequence = a.sequence,
                             .batch = a.batch,
                             .dropout = a.dropout,
                             .threads = threads};
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
