#include "bench/decoding.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "quatrain/nn/factorize.h"
#include "quatrain/nn/parameters.h"
#include "support/numbers.h"

namespace quatrain::bench {
namespace {

constexpr int64_t kEnd = 3, kFirstWord = 4;

// So many random target tokens for each sentence: its source's tokens bring as many each.
std::shared_ptr<const models::Shortlist> random_shortlist(const DecodingCase& asked) {
  if (asked.shortlist == 0) return nullptr;
  torch::manual_seed(2);
  const int64_t each = std::min((asked.shortlist + asked.source - 1) / asked.source, asked.vocabulary);
  std::vector<std::vector<int64_t>> lists(static_cast<size_t>(asked.vocabulary));
  const at::Tensor tokens = torch::randint(asked.vocabulary, {asked.vocabulary, each}, torch::kLong);
  const int64_t* first = tokens.const_data_ptr<int64_t>();
  for (auto& list : lists) {
    list.assign(first, first + each);
    first += each;
  }
  lists[kEnd].clear();
  return std::make_shared<models::Shortlist>(lists, std::vector<int64_t>{}, asked.vocabulary);
}

models::TranslationOptions options_of(const DecodingCase& asked) {
  models::TranslationOptions options;
  options.search.beam = asked.beam;
  // The mark of the end counts as a token.
  options.search.shortest = options.longest = options.longest_offset = asked.target - 1;
  options.longest_factor = 0;
  options.batch = asked.batch;
  options.batch_tokens = asked.batch * (asked.source + 1);
  options.exact = asked.exact;
  options.projection = asked.projection;
  options.shortlist = random_shortlist(asked);
  return options;
}

Call call_of(const DecodingCase& asked, models::Seq2Seq model) {
  return [model, sources = decoding_sources(asked), options = options_of(asked)] {
    models::translate(model, sources, options);
  };
}

std::string tokens_a_second(const DecodingCase& asked, double seconds) {
  return std::to_string(std::llround(static_cast<double>(asked.batch * asked.target) / seconds));
}

std::vector<Field> asked_fields(const DecodingCase& asked) {
  return {field("algebra", asked.algebra),
          field("output", models::name(asked.output)),
          hidden("attention", std::string(nn::name(asked.attention))),
          hidden("packed", int64_t{asked.packed}),
          field("batch", asked.batch),
          field("beam", asked.beam),
          hidden("width", asked.width),
          hidden("heads", asked.heads),
          hidden("feed_forward", asked.feed_forward),
          hidden("layers", asked.layers),
          hidden("vocabulary", asked.vocabulary),
          hidden("source", asked.source),
          hidden("target", asked.target),
          hidden("lengths", std::string(asked.mixed ? "mixed" : "equal")),
          hidden("projection", std::string(models::name(asked.projection))),
          hidden("shortlist", asked.shortlist),
          hidden("exact", int64_t{asked.exact})};
}

}  // namespace

models::Seq2Seq decoding_model(const DecodingCase& asked, bool real) {
  torch::manual_seed(0);
  const bool in_algebra = asked.output == models::OutputLayer::algebra && !real;
  models::Seq2Seq model(models::Seq2SeqOptions(asked.vocabulary, asked.vocabulary)
                            .width(asked.width)
                            .heads(asked.heads)
                            .feed_forward(asked.feed_forward)
                            .encoder_layers(asked.layers)
                            .decoder_layers(asked.layers)
                            .share_embeddings(true)
                            .algebra(real ? "real" : asked.algebra)
                            .packed(asked.packed)
                            .attention(real ? nn::AttentionKind::automatic : asked.attention)
                            .embedding_in_algebra(in_algebra)
                            .output(asked.output == models::OutputLayer::algebra && real
                                        ? models::OutputLayer::real
                                        : asked.output)
                            .max_length(asked.target + asked.source + 1));
  model->eval();
  nn::factorize(*model);
  return model;
}

std::vector<std::vector<int64_t>> decoding_sources(const DecodingCase& asked) {
  torch::manual_seed(1);
  std::vector<std::vector<int64_t>> sources;
  for (int64_t i = 0; i < asked.batch; ++i) {
    const int64_t length =
        asked.mixed ? std::max<int64_t>(1, asked.source * (i + 1) / asked.batch) : asked.source;
    const at::Tensor words = torch::randint(kFirstWord, asked.vocabulary, {length}, torch::kLong);
    sources.emplace_back(words.const_data_ptr<int64_t>(), words.const_data_ptr<int64_t>() + length);
    sources.back().push_back(kEnd);
  }
  return sources;
}

ScoredPairs decoding_pairs(const DecodingCase& asked, const models::Seq2Seq& model) {
  DecodingCase few = asked;
  few.batch = 4;
  few.mixed = true;
  ScoredPairs pairs{decoding_sources(few), {}, {}};
  for (size_t i = 0; i < pairs.sources.size(); ++i) {
    const at::Tensor words = torch::randint(kFirstWord, asked.vocabulary, {asked.target - 1}, torch::kLong);
    pairs.targets.emplace_back(words.const_data_ptr<int64_t>(),
                               words.const_data_ptr<int64_t>() + words.numel());
  }
  pairs.scores = models::score_targets(model, pairs.sources, pairs.targets);
  return pairs;
}

Subject decoding(const std::vector<DecodingCase>& cases, double seconds) {
  Subject subject;
  if (!cases.empty()) {
    const DecodingCase& one = cases.front();
    subject.title = "Translation: " + std::to_string(one.layers) + " + " + counted(one.layers, "layer") +
                    " of width " + std::to_string(one.width) + ", feed-forward " +
                    std::to_string(one.feed_forward) + ", " + grouped(one.vocabulary) + " tokens; " +
                    (one.mixed ? "1 to " : "") + std::to_string(one.source) + " tokens become " +
                    std::to_string(one.target) + ", float32";
    if (one.projection != models::Projection::float32)
      subject.title += std::string(", output layer ") + models::name(one.projection);
    if (one.shortlist > 0) subject.title += ", shortlists of " + counted(one.shortlist, "token");
  }
  subject.notes =
      "batch: sentences. tok/s: target tokens a second, the mark of the end included. output: what scores "
      "the "
      "tokens;\n`algebra`: the embeddings are in the algebra too. The real twin's output is real or tied.\n";
  subject.timing = {.seconds = seconds, .turn = 300e-6};
  for (const auto& asked : cases) {
    Case one{.threads = asked.threads};
    for (const bool real : {false, true})
      one.memory.emplace_back(real ? "real" : "ours",
                              [asked, real] { return call_of(asked, decoding_model(asked, real)); });
    one.make = [asked] {
      Contest contest;
      for (const bool real : {false, true}) {
        const auto model = decoding_model(asked, real);
        contest.candidates.push_back(
            {real ? "real" : "ours", call_of(asked, model), nn::parameter_report(*model).total});
      }
      contest.contenders.push_back(
          {.asked = asked_fields(asked), .more = [asked](const Found& found) -> std::vector<Field> {
             return {column("tok/s", tokens_a_second(asked, found.at("ours").time.median)),
                     column("real tok/s", tokens_a_second(asked, found.at("real").time.median))};
           }});
      return contest;
    };
    subject.cases.push_back(std::move(one));
  }
  return subject;
}

}  // namespace quatrain::bench
