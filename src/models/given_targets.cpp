#include <torch/types.h>

#include <algorithm>

#include "models/pair_batches.h"
#include "models/share_out.h"
#include "nn/check.h"
#include "quatrain/models/translate.h"

// What models say of targets that are given: the tokens of all places are seen at once.
namespace quatrain::models {
namespace {

// Targets with the marks that stand around them.
struct Targets {
  std::vector<Tokens> begun, ended;
  std::vector<PairSize> sizes;

  Targets(const char* name, const std::vector<Tokens>& sources, const std::vector<Tokens>& targets,
          const SearchOptions& marks) {
    nn::require(targets.size() == sources.size(), name, ": there must be a target for each of the ",
                sources.size(), " sources, got ", targets.size());
    for (size_t i = 0; i < targets.size(); ++i) {
      begun.push_back({marks.begin});
      begun.back().insert(begun.back().end(), targets[i].begin(), targets[i].end());
      ended.push_back(targets[i]);
      ended.back().push_back(marks.end);
      sizes.push_back({sources[i].size(), begun[i].size()});
    }
  }
};

// The log-probabilities of tokens (rows), given each model's hidden states (rows, width). A portion after the
// other, because the scores of a long text's whole vocabulary would not fit into memory.
at::Tensor log_probabilities(const Ensemble& ensemble, const std::vector<at::Tensor>& hidden,
                             const at::Tensor& tokens) {
  constexpr int64_t kPortion = 512;
  const int64_t rows = tokens.size(0);
  std::vector<at::Tensor> parts;
  for (int64_t begin = 0, count = 0; begin < rows; begin += count) {
    count = rows - begin < kPortion + kExactRows ? rows - begin : kPortion;
    std::vector<at::Tensor> scores;
    for (size_t i = 0; i < hidden.size(); ++i) {
      Seq2Seq model = ensemble.models[i];
      scores.push_back(model->scores(hidden[i].narrow(0, begin, count)));
    }
    at::Tensor logits = Ensemble::mean(scores);
    if (logits.scalar_type() != at::kDouble) logits = logits.to(at::kFloat);
    const at::Tensor following = tokens.narrow(0, begin, count).unsqueeze(1);
    parts.push_back(logits.gather(1, following).squeeze(1) - logits.logsumexp(1));
  }
  return at::cat(parts);
}

// Of a batch: each source and target, as long as the longest.
struct Batch {
  Padded source, target;
  at::Tensor following;  // what follows each place of the target

  Batch(const std::vector<Tokens>& sources, const Targets& targets, const std::vector<size_t>& which,
        const Places& places, int64_t mark, at::Device device) {
    source = pad(sources, which, mark, places, device);
    target = pad(targets.begun, which, mark, places, device);
    following = pad(targets.ended, which, mark, places, device).tokens;
  }
};

}  // namespace

std::vector<std::vector<double>> score_targets(const Ensemble& ensemble, const std::vector<Tokens>& sources,
                                               const std::vector<Tokens>& targets,
                                               const TranslationOptions& options) {
  check_pairs("score_targets", ensemble, sources, options);
  const Targets marked("score_targets", sources, targets, options.search);
  const Places places(ensemble, options);
  std::vector<std::vector<double>> results(sources.size());
  const auto work = [&](const std::vector<size_t>& which) {
    const Batch batch(sources, marked, which, places, options.search.pad, ensemble.device());
    std::vector<at::Tensor> hidden;
    for (Seq2Seq model : ensemble.models) {
      const at::Tensor memory = model->encode(batch.source.tokens, batch.source.padding);
      hidden.push_back(model->hidden(batch.target.tokens, memory, batch.target.padding, batch.source.padding)
                           .flatten(0, 1));
    }
    const at::Tensor scores = log_probabilities(ensemble, hidden, batch.following.flatten())
                                  .view(batch.following.sizes())
                                  .to(at::kDouble)
                                  .cpu()
                                  .contiguous();
    for (size_t row = 0; row < which.size(); ++row) {
      const double* first = scores.const_data_ptr<double>() + static_cast<int64_t>(row) * scores.size(1);
      results[which[row]].assign(first, first + marked.ended[which[row]].size());
    }
  };
  for_each_batch(marked.sizes, places, options, work);
  return results;
}

std::vector<std::vector<int64_t>> align_targets(const Ensemble& ensemble, const std::vector<Tokens>& sources,
                                                const std::vector<Tokens>& targets,
                                                const TranslationOptions& options, int64_t layer) {
  check_pairs("align_targets", ensemble, sources, options);
  const Targets marked("align_targets", sources, targets, options.search);
  const Places places(ensemble, options);
  std::vector<std::vector<int64_t>> results(sources.size());
  const auto work = [&](const std::vector<size_t>& which) {
    const Batch batch(sources, marked, which, places, options.search.pad, ensemble.device());
    at::Tensor sum;
    for (Seq2Seq model : ensemble.models) {
      const at::Tensor weights =
          model->cross_weights(batch.target.tokens, model->encode(batch.source.tokens, batch.source.padding),
                               layer, batch.target.padding, batch.source.padding);
      sum = sum.defined() ? sum + weights : weights;
    }
    sum = sum.to(at::kDouble).cpu().contiguous();
    for (size_t row = 0; row < which.size(); ++row) {
      const auto words = static_cast<int64_t>(sources[which[row]].size());
      const int64_t seen = std::max<int64_t>(1, words - 1);  // without the end mark
      for (size_t place = 0; place < targets[which[row]].size(); ++place) {
        const double* first =
            sum.const_data_ptr<double>() +
            (static_cast<int64_t>(row) * sum.size(1) + static_cast<int64_t>(place)) * sum.size(2);
        results[which[row]].push_back(std::max_element(first, first + seen) - first);
      }
    }
  };
  for_each_batch(marked.sizes, places, options, work);
  return results;
}

}  // namespace quatrain::models
