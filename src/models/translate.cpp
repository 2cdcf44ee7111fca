#include "quatrain/models/translate.h"

#include <torch/torch.h>

#include <algorithm>

#include "models/pair_batches.h"
#include "models/share_out.h"
#include "nn/check.h"
#include "quatrain/models/seq2seq_decoder.h"

namespace quatrain::models {
namespace {

class Translation {
 public:
  Translation(const Ensemble& ensemble, const std::vector<Tokens>& sources,
              const std::vector<Tokens>& prefixes, const TranslationOptions& options)
      : ensemble_(ensemble), sources_(sources), prefixes_(prefixes), options_(options) {}

  // The hypotheses of the sources of one batch.
  std::vector<std::vector<Hypothesis>> operator()(const std::vector<size_t>& which) const {
    const at::Device device = ensemble_.device();
    const Padded source = pad(sources_, which, options_.search.pad, options_.exact ? kExactRows : 0, device);
    std::vector<SearchTask> tasks;
    int64_t longest = 0;
    for (const size_t i : which) {
      const auto words = static_cast<double>(sources_[i].size() - 1);
      SearchTask& task = tasks.emplace_back();
      task.longest = std::min(
          options_.longest, static_cast<int64_t>(options_.longest_factor * words) + options_.longest_offset);
      if (!prefixes_.empty()) task.prefix = prefixes_[i];
      task.longest =
          std::max({task.longest, options_.search.shortest, static_cast<int64_t>(task.prefix.size())});
      longest = std::max(longest, task.longest);
    }
    const auto sentences = static_cast<int64_t>(which.size());
    const int64_t rows = std::max(sentences * options_.search.beam, options_.exact ? kExactRows : 1);
    std::vector<Seq2SeqDecoder> decoders;
    for (const Seq2Seq& model : ensemble_.models)
      decoders.emplace_back(model, source.tokens, source.padding, rows, longest + 1);
    const Step step = [&](Tokens tokens, Tokens parents) {
      const auto live = static_cast<int64_t>(tokens.size());
      if (options_.exact && live < kExactRows) {
        tokens.resize(kExactRows, options_.search.end);
        parents.resize(kExactRows, 0);
      }
      const at::Tensor last = at::tensor(tokens, at::kLong).to(device),
                       before = at::tensor(parents, at::kLong).to(device);
      std::vector<at::Tensor> scores;
      for (Seq2SeqDecoder& decoder : decoders)
        scores.push_back(decoder.step(last, before).narrow(0, 0, live));
      return Ensemble::mean(std::move(scores));
    };
    return beam_search(step, tasks, options_.search);
  }

 private:
  const Ensemble& ensemble_;
  const std::vector<Tokens>& sources_;
  const std::vector<Tokens>& prefixes_;
  const TranslationOptions& options_;
};

}  // namespace

std::vector<std::vector<Hypothesis>> translate(const Ensemble& ensemble, const std::vector<Tokens>& sources,
                                               const TranslationOptions& options,
                                               const std::vector<Tokens>& prefixes,
                                               const std::function<void()>& after_batch) {
  check_pairs("translate", ensemble, sources, options);
  nn::require(prefixes.empty() || prefixes.size() == sources.size(),
              "translate: there must be a prefix for each of the ", sources.size(), " sources, got ",
              prefixes.size());
  const Translation translation(ensemble, sources, prefixes, options);
  std::vector<size_t> lengths;
  for (const Tokens& source : sources) lengths.push_back(source.size());
  std::vector<std::vector<Hypothesis>> results(sources.size());
  for_each_batch(
      lengths, options,
      [&](const std::vector<size_t>& batch) {
        auto found = translation(batch);
        for (size_t i = 0; i < batch.size(); ++i) results[batch[i]] = std::move(found[i]);
      },
      after_batch);
  return results;
}

}  // namespace quatrain::models
