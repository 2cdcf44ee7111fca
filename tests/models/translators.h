#pragma once

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "quatrain/models/translate.h"

/// Small translators, and the search that tests compare with.
namespace quatrain::test {

using Tokens = std::vector<int64_t>;

/// What a small translator is made of.
struct Design {
  std::string algebra;
  nn::AttentionKind attention = nn::AttentionKind::real;
  /// Embedding and output are in the algebra, maps of attention are packed, and norms stand before.
  bool whole = false;
};
inline std::ostream& operator<<(std::ostream& out, const Design& design) {
  return out << design.algebra << " " << nn::name(design.attention) << (design.whole ? " whole" : "");
}

/// Those that a search is tested with.
inline std::vector<Design> designs() {
  using Kind = nn::AttentionKind;
  return {{"real"},
          {"quaternion"},
          {"phm(4)"},
          {"quaternion", Kind::componentwise},
          {"quaternion", Kind::componentwise, true},
          {"phm(4)", Kind::real, true}};
}

/// A small translator that is sharper than fresh weights are, so that hypotheses end at different lengths.
inline models::Seq2Seq trained_like(const Design& design, int64_t vocabulary = 24) {
  models::Seq2SeqOptions options(vocabulary, vocabulary);
  options.width(32).heads(2).feed_forward(48).encoder_layers(2).decoder_layers(2).dropout(0);
  options.algebra(design.algebra).attention(design.attention);
  if (design.whole)
    options.embedding_in_algebra(true)
        .output(models::OutputLayer::algebra)
        .packed(true)
        .norm(nn::NormStyle::pre);
  models::Seq2Seq model(options);
  const torch::NoGradGuard no_grad;
  for (auto& p : model->target->parameters()) p.mul_(3);
  if (design.whole)
    for (auto& p : model->output->parameters()) p.mul_(3);
  model->eval();
  return model;
}
inline models::Seq2Seq trained_like(const char* algebra, int64_t vocabulary = 24) {
  return trained_like(Design{algebra}, vocabulary);
}

inline std::vector<Tokens> random_sources(int64_t count, int64_t vocabulary = 24, int64_t longest = 11) {
  std::vector<Tokens> sources;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t length = 1 + (i * 7) % longest;
    const at::Tensor words = torch::randint(4, vocabulary, {length}, torch::kLong);
    sources.emplace_back(words.const_data_ptr<int64_t>(), words.const_data_ptr<int64_t>() + length);
    sources.back().push_back(3);
  }
  return sources;
}

/// What options forbid in a hypothesis, found in all of it.
inline bool is_forbidden(const Tokens& tokens, const models::SearchOptions& options) {
  for (const Tokens& sequence : options.banned)
    if (std::search(tokens.begin(), tokens.end(), sequence.begin(), sequence.end()) != tokens.end())
      return true;
  std::set<Tokens> seen;
  for (size_t i = 0; options.no_repeat > 0 && i + options.no_repeat <= tokens.size(); ++i)
    if (!seen.emplace(tokens.begin() + i, tokens.begin() + i + options.no_repeat).second) return true;
  return false;
}

/// The same search without batches and caches: every hypothesis of one sentence, from the start, at each
/// step, with the mean of the models' probabilities.
inline std::vector<models::Hypothesis> plain_search(const std::vector<models::Seq2Seq>& ensemble,
                                                    const Tokens& source, int64_t longest,
                                                    const models::SearchOptions& options) {
  const torch::NoGradGuard no_grad;
  struct Path {
    Tokens tokens;
    std::vector<double> scores;
    double sum = 0;
  };
  std::vector<Path> live(1);
  std::vector<models::Hypothesis> finished;
  const auto by_score = [](const models::Hypothesis& a, const models::Hypothesis& b) {
    return a.score > b.score;
  };
  while (true) {
    std::vector<std::pair<double, Path>> found;  // a path ends with the mark of its end
    for (const Path& path : live) {
      Tokens input{options.begin};
      input.insert(input.end(), path.tokens.begin(), path.tokens.end());
      at::Tensor sum = torch::zeros({}, torch::kDouble);
      for (models::Seq2Seq model : ensemble)
        sum =
            sum + model->forward(torch::tensor(source).unsqueeze(0), torch::tensor(input).unsqueeze(0))[0][-1]
                      .softmax(0);
      const at::Tensor scores = (sum / static_cast<double>(ensemble.size())).log();
      const auto length = static_cast<int64_t>(path.tokens.size());
      const auto go_on = [&](int64_t token) {
        const double score = scores[token].item<double>();
        Path next = path;
        next.tokens.push_back(token);
        next.scores.push_back(score);
        next.sum += score;
        found.emplace_back(next.sum, next);
      };
      const size_t before = found.size();
      for (int64_t token = 0; token < scores.size(0); ++token) {
        if (token == options.begin || token == options.pad) continue;
        if (token == options.end && length < options.shortest) continue;
        if (token != options.end && length == longest) continue;
        Tokens with = path.tokens;
        with.push_back(token);
        if (token == options.end || !is_forbidden(with, options)) go_on(token);
      }
      if (found.size() == before) go_on(options.end);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    live.clear();
    for (size_t rank = 0; rank < std::min<size_t>(found.size(), 2 * options.beam); ++rank) {
      Path& path = found[rank].second;
      if (path.tokens.back() != options.end) {
        if (live.size() < static_cast<size_t>(options.beam)) live.push_back(path);
        continue;
      }
      if (rank >= static_cast<size_t>(options.beam)) continue;
      const double score = path.sum / models::length_penalty(options, path.tokens.size());
      path.tokens.pop_back();
      finished.push_back({path.tokens, path.scores, path.sum, score});
    }
    std::stable_sort(finished.begin(), finished.end(), by_score);
    const double patience = options.beam == 1 ? 1 : options.patience;
    const double enough = patience > 0 ? static_cast<double>(options.beam) * patience : 1e300;
    if (live.empty() || static_cast<double>(finished.size()) >= enough) break;
    double most = -1e300;
    for (const Path& path : live)
      for (auto length = static_cast<int64_t>(path.tokens.size()) + 1; length <= longest + 1; ++length)
        most = std::max(most, path.sum / models::length_penalty(options, length));
    if (finished.size() >= static_cast<size_t>(options.best) &&
        finished[static_cast<size_t>(options.best) - 1].score >= most)
      break;
  }
  if (finished.size() > static_cast<size_t>(options.best)) finished.resize(static_cast<size_t>(options.best));
  return finished;
}

inline models::TranslationOptions translation(int64_t beam, int64_t best, double alpha,
                                              models::LengthPenalty penalty, int64_t shortest = 0) {
  models::TranslationOptions options;
  options.search.beam = beam;
  options.search.best = best;
  options.search.alpha = alpha;
  options.search.penalty = penalty;
  options.search.shortest = shortest;
  options.longest_factor = 1;
  options.longest_offset = 4;
  options.batch = 5;
  return options;
}

}  // namespace quatrain::test
