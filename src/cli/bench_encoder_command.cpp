#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "cli/bench_encoder.h"
#include "cli/bench_run.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/stop.h"
#include "nn/check.h"
#include "quatrain/nn/algebra_spec.h"

namespace quatrain::cli {
namespace {

void check(const BenchEncoderArguments& a, const std::string& name) {
  try {
    const nn::AlgebraSpec algebra(name);
    nn::require_divisible("bench", "--width", a.width, algebra.n * a.heads, "n * heads");
    nn::require_divisible("bench", "--feed-forward", a.feed_forward, algebra.n, "n");
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
}

// A batch of texts, a step that decodes one word, and training.
std::vector<EncoderCase> cases_of(const BenchEncoderArguments& a) {
  std::vector<EncoderCase> cases;
  for (const auto& algebra : a.algebras) {
    check(a, algebra);
    for (const int threads : threads_or_default(a.threads)) {
      EncoderCase one{algebra, a.width,   a.heads, a.feed_forward, a.sequence,
                      a.batch, a.dropout, threads, false};
      cases.push_back(one);
      one.batch = one.sequence = 1;
      cases.push_back(one);
      one.batch = a.batch, one.sequence = a.sequence, one.training = true;
      cases.push_back(one);
    }
  }
  return cases;
}

}  // namespace

int bench_encoder_command(const BenchEncoderArguments& arguments) {
  const auto cases = cases_of(arguments);
  watch_for_stop();
  // Memory first: see peak_memory.
  std::vector<std::pair<int64_t, int64_t>> peaks(cases.size());
  std::vector<EncoderResult> results;
  const bool stopped = measure_cases(2 * cases.size(), [&](size_t i) {
    const size_t c = i % cases.size();
    if (i < cases.size()) {
      EncoderCase real = cases[c];
      real.algebra = "real";
      peaks[c] = {encoder_memory(cases[c]), encoder_memory(real)};
    } else {
      results.push_back(measure_encoder(cases[c], arguments.seconds));
      std::tie(results.back().peak_bytes, results.back().real_peak_bytes) = peaks[c];
    }
  });
  publish(report(results, colours()), to_json(results), arguments.json);
  if (stopped) throw Stopped{};
  return kSuccess;
}

std::string report(const std::vector<EncoderResult>& results, bool colour) {
  if (results.empty()) return "";
  const auto share = [&](double ours, double real) {
    const std::string text = real > 0 ? fixed(ours / real, 2) : "-";
    return colour ? painted(text, ours <= real ? "32" : "31") : text;
  };
  Table table("lllrrrrrrrrrrrrr");
  table.row({"algebra", "pass", "batch", "threads", "time", "spread", "to real", "maps", "", "between", "",
             "feed-fwd", "", "rest", "peak", "", "kept"});
  table.rule();
  for (const auto& r : results) {
    const auto& c = r.asked;
    const auto& [ours, real] = std::pair{r.ours, r.real};
    table.row({c.algebra, c.training ? "training" : "inference",
               std::to_string(c.batch) + "x" + std::to_string(c.sequence), std::to_string(c.threads),
               seconds(ours.whole.median), percent(ours.whole.spread(), 0),
               share(ours.whole.median, real.whole.median), seconds(ours.maps.median),
               share(ours.maps.median, real.maps.median), seconds(ours.between_maps()),
               share(ours.between_maps(), real.between_maps()), seconds(ours.feed_forward.median),
               share(ours.feed_forward.median, real.feed_forward.median), seconds(ours.rest()),
               bytes(static_cast<double>(r.peak_bytes)),
               share(static_cast<double>(r.peak_bytes), static_cast<double>(r.real_peak_bytes)),
               r.prepared > 0 ? bytes(static_cast<double>(r.prepared)) : "-"});
  }
  const auto& first = results.front().asked;
  return "An encoder layer: width " + std::to_string(first.width) + ", " + counted(first.heads, "head") +
         ", feed-forward " + std::to_string(first.feed_forward) + ", float32\n\n" + table.text() +
         "\nBeside each figure its ratio to the real twin's. batch: texts x words. maps: the attention's "
         "four. "
         "between: what the\nattention does between them, scores and weights. rest: norms, residuals, "
         "dropout. "
         "peak: memory of the layer and a pass,\nfrom VmHWM in a process of its own. kept: bytes of weights "
         "prepared for eval mode. spread: between the quartiles.\n";
}

nlohmann::ordered_json to_json(const std::vector<EncoderResult>& results) {
  auto all = nlohmann::ordered_json::array();
  const auto parts = [](const EncoderTimes& t) {
    return nlohmann::ordered_json{{"maps", t.maps.median * 1e6},
                                  {"between", t.between_maps() * 1e6},
                                  {"feed_forward", t.feed_forward.median * 1e6},
                                  {"rest", t.rest() * 1e6}};
  };
  for (const auto& r : results) {
    const auto& c = r.asked;
    all.push_back({{"algebra", c.algebra},
                   {"width", c.width},
                   {"heads", c.heads},
                   {"feed_forward", c.feed_forward},
                   {"sequence", c.sequence},
                   {"batch", c.batch},
                   {"dropout", c.dropout},
                   {"dtype", "float32"},
                   {"threads", c.threads},
                   {"pass", c.training ? "training" : "inference"},
                   {"ratio_real", r.ratio_real()},
                   {"spread", r.ours.whole.spread()},
                   {"us", r.ours.whole.median * 1e6},
                   {"real_us", r.real.whole.median * 1e6},
                   {"parts_us", parts(r.ours)},
                   {"real_parts_us", parts(r.real)},
                   {"parameters", r.parameters},
                   {"real_parameters", r.real_parameters},
                   {"prepared_bytes", r.prepared},
                   {"peak_bytes", r.peak_bytes},
                   {"real_peak_bytes", r.real_peak_bytes}});
  }
  return all;
}

}  // namespace quatrain::cli
