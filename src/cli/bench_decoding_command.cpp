#include <nlohmann/json.hpp>
#include <set>

#include "bench/decoding.h"
#include "cli/bench_run.h"
#include "cli/commands.h"
#include "quatrain/models/ctranslate2.h"
#include "quatrain/nn/algebra_spec.h"
#include "support/atomic_file.h"
#include "support/atomic_folder.h"

namespace quatrain::cli {
namespace {

using Json = nlohmann::ordered_json;

void check(const BenchDecodingArguments& a, const std::string& algebra) {
  check_sizes(algebra, {{"--width", a.width, a.heads}, {"--feed-forward", a.feed_forward}});
  if (a.output != "algebra") return;
  if (a.shortlist > 0 && nn::AlgebraSpec(algebra).n > 1)
    throw UsageError("bench: --shortlist takes rows of a real output layer: --output real or tied");
  check_sizes(algebra, {{"--vocabulary", a.vocabulary}});
}

// How a model scores a few pairs, for CTranslate2 to be compared with.
std::string scores_of(const bench::ScoredPairs& pairs, const std::vector<std::string>& pieces) {
  const auto texts = [&](const std::vector<int64_t>& tokens) {
    Json all = Json::array();
    for (const int64_t token : tokens) all.push_back(pieces[static_cast<size_t>(token)]);
    return all;
  };
  Json all = Json::array();
  for (size_t i = 0; i < pairs.scores.size(); ++i) {
    const auto& source = pairs.sources[i];
    all.push_back({{"source", texts({source.begin(), source.end() - 1})},  // CTranslate2 adds the end mark
                   {"target", texts(pairs.targets[i])},
                   {"log_probabilities", pairs.scores[i]}});
  }
  return all.dump() + "\n";
}

// The model of each algebra and the real one with scores, as scripts/bench_ctranslate2 reads them, and the
// sources.
void write_models(const BenchDecodingArguments& a, const std::vector<bench::DecodingCase>& cases) {
  std::vector<std::string> pieces{"<pad>", "<unk>", "<s>", "</s>"};
  while (static_cast<int64_t>(pieces.size()) < a.vocabulary)
    pieces.push_back("w" + std::to_string(pieces.size()));
  AtomicFolder folder(a.write, /*replaces_empty=*/true);
  std::set<std::string> algebras(a.algebras.begin(), a.algebras.end());
  algebras.insert("real");
  for (const auto& algebra : algebras) {
    bench::DecodingCase one = cases.front();
    one.algebra = algebra;
    const models::Seq2Seq model = bench::decoding_model(one, algebra == "real");
    models::write_ctranslate2(folder.path() / algebra, model, pieces, pieces);
    write_text(folder.path() / algebra / "scores.json", scores_of(bench::decoding_pairs(one, model), pieces));
  }
  bench::DecodingCase most = cases.front();
  for (const auto& one : cases) most.batch = std::max(most.batch, one.batch);
  std::string lines;
  for (const auto& source : bench::decoding_sources(most))
    for (size_t i = 0; i + 1 < source.size(); ++i)
      lines += pieces[static_cast<size_t>(source[i])] + (i + 2 < source.size() ? " " : "\n");
  write_text(folder.path() / "sources.txt", lines);
  folder.commit();
}

}  // namespace

int bench_decoding_command(const BenchDecodingArguments& a) {
  std::vector<bench::DecodingCase> cases;
  for (const auto& algebra : a.algebras) {
    check(a, algebra);
    for (const int64_t beam : a.beams)
      if (beam > a.vocabulary)
        throw UsageError("bench: --beam must be at most --vocabulary = " + std::to_string(a.vocabulary) +
                         ", got " + std::to_string(beam));
    for (const int threads : threads_or_default(a.threads))
      for (const int64_t batch : a.batches)
        for (const int64_t beam : a.beams) {
          bench::DecodingCase one;
          one.algebra = algebra;
          one.output = models::parse_output_layer(a.output);
          one.attention = nn::parse_attention_kind(a.attention);
          one.width = a.width, one.heads = a.heads, one.feed_forward = a.feed_forward;
          one.layers = a.layers, one.vocabulary = a.vocabulary;
          one.packed = a.packed;
          one.source = a.source, one.target = a.target, one.mixed = a.lengths == "mixed";
          one.projection = models::parse_projection(a.projection), one.shortlist = a.shortlist;
          one.batch = batch, one.beam = beam, one.exact = a.exact, one.threads = threads;
          cases.push_back(one);
        }
  }
  if (!a.write.empty()) {
    write_models(a, cases);
    return kSuccess;
  }
  return run_bench(bench::decoding(cases, a.seconds), a.json);
}

}  // namespace quatrain::cli
