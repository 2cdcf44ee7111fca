#include "quatrain/models/translate.h"

#include <torch/torch.h>

#include <algorithm>
#include <numeric>

#include "models/share_out.h"
#include "nn/check.h"
#include "quatrain/models/seq2seq_decoder.h"

namespace quatrain::models {
namespace {

using Tokens = std::vector<int64_t>;

struct Padded {
  at::Tensor tokens, padding;  // padding: undefined where there is none
};

Padded pad(const std::vector<Tokens>& texts, const std::vector<size_t>& which, int64_t mark, int64_t shortest,
           at::Device device) {
  const auto rows = static_cast<int64_t>(which.size());
  int64_t length = shortest, least = std::numeric_limits<int64_t>::max();
  for (const size_t i : which) {
    length = std::max(length, static_cast<int64_t>(texts[i].size()));
    least = std::min(least, static_cast<int64_t>(texts[i].size()));
  }
  Padded result{at::full({rows, length}, mark, at::kLong), {}};
  at::Tensor padding = at::ones({rows, length}, at::kBool);
  for (int64_t row = 0; row < rows; ++row) {
    const Tokens& text = texts[which[static_cast<size_t>(row)]];
    std::copy(text.begin(), text.end(), result.tokens.mutable_data_ptr<int64_t>() + row * length);
    std::fill_n(padding.mutable_data_ptr<bool>() + row * length, text.size(), false);
  }
  result.tokens = result.tokens.to(device);
  if (least < length) result.padding = padding.to(device);
  return result;
}

// Sources of about equal length, longest first, so that the first batch needs the most memory.
std::vector<std::vector<size_t>> batches(const std::vector<Tokens>& sources,
                                         const TranslationOptions& options) {
  std::vector<size_t> order(sources.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return sources[a].size() > sources[b].size(); });
  std::vector<std::vector<size_t>> all;
  for (const size_t i : order) {
    const bool fits = !all.empty() && static_cast<int64_t>(all.back().size()) < options.batch &&
                      static_cast<int64_t>((all.back().size() + 1) * sources[all.back().front()].size()) <=
                          options.batch_tokens;
    if (!fits) all.emplace_back();
    all.back().push_back(i);
  }
  return all;
}

class Translation {
 public:
  Translation(Seq2Seq model, const std::vector<Tokens>& sources, const std::vector<Tokens>& prefixes,
              const TranslationOptions& options)
      : model_(std::move(model)), sources_(sources), prefixes_(prefixes), options_(options) {}

  // The hypotheses of the sources of one batch.
  std::vector<std::vector<Hypothesis>> operator()(const std::vector<size_t>& which) const {
    const at::Device device = model_->target->embedding->parameters().front().device();
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
    Seq2SeqDecoder decoder(model_, source.tokens, source.padding, rows, longest + 1);
    const Step step = [&](Tokens tokens, Tokens parents) {
      const auto live = static_cast<int64_t>(tokens.size());
      if (options_.exact && live < kExactRows) {
        tokens.resize(kExactRows, options_.search.end);
        parents.resize(kExactRows, 0);
      }
      const auto move = [&](const Tokens& t) { return at::tensor(t, at::kLong).to(device); };
      return decoder.step(move(tokens), move(parents)).narrow(0, 0, live);
    };
    return beam_search(step, tasks, options_.search);
  }

 private:
  Seq2Seq model_;
  const std::vector<Tokens>& sources_;
  const std::vector<Tokens>& prefixes_;
  const TranslationOptions& options_;
};

void check(const Seq2Seq& model, const std::vector<Tokens>& sources, const TranslationOptions& options) {
  nn::require(!model->is_training(), "translate: the model must be in eval mode; call eval()");
  nn::require(options.batch >= 1 && options.batch_tokens >= 1 && options.longest >= 0 &&
                  options.longest_factor >= 0 && options.longest_offset >= 0,
              "translate: batch and batch_tokens must be at least 1, the limits of length at least 0");
  for (const Tokens& source : sources)
    nn::require(!source.empty(), "translate: every source must have a token, that of its end");
}

// `work` for each batch: one after the other, or one for each thread, whose own products have one.
void for_each_batch(const std::vector<std::vector<size_t>>& all, bool exact,
                    const std::function<void(const std::vector<size_t>&)>& work,
                    const std::function<void()>& after_batch) {
  const torch::NoGradGuard no_grad;
  if (!exact) {
    for (const auto& batch : all) {
      work(batch);
      if (after_batch) after_batch();
    }
    return;
  }
  share_out(
      static_cast<int64_t>(all.size()), [&](int64_t i) { work(all[static_cast<size_t>(i)]); }, after_batch);
}

}  // namespace

std::vector<std::vector<Hypothesis>> translate(Seq2Seq model, const std::vector<Tokens>& sources,
                                               const TranslationOptions& options,
                                               const std::vector<Tokens>& prefixes,
                                               const std::function<void()>& after_batch) {
  check(model, sources, options);
  nn::require(prefixes.empty() || prefixes.size() == sources.size(),
              "translate: there must be a prefix for each of the ", sources.size(), " sources, got ",
              prefixes.size());
  const Translation translation(std::move(model), sources, prefixes, options);
  std::vector<std::vector<Hypothesis>> results(sources.size());
  for_each_batch(
      batches(sources, options), options.exact,
      [&](const std::vector<size_t>& batch) {
        auto found = translation(batch);
        for (size_t i = 0; i < batch.size(); ++i) results[batch[i]] = std::move(found[i]);
      },
      after_batch);
  return results;
}

std::vector<std::vector<double>> score_targets(Seq2Seq model, const std::vector<Tokens>& sources,
                                               const std::vector<Tokens>& targets,
                                               const TranslationOptions& options) {
  check(model, sources, options);
  nn::require(targets.size() == sources.size(), "score_targets: there must be a target for each of the ",
              sources.size(), " sources, got ", targets.size());
  std::vector<Tokens> begun, ended;
  for (const Tokens& target : targets) {
    begun.push_back({options.search.begin});
    begun.back().insert(begun.back().end(), target.begin(), target.end());
    ended.push_back(target);
    ended.back().push_back(options.search.end);
  }
  const at::Device device = model->target->embedding->parameters().front().device();
  std::vector<std::vector<double>> results(sources.size());
  const auto work = [&](const std::vector<size_t>& batch) {
    const int64_t shortest = options.exact ? kExactRows : 0;
    const Padded source = pad(sources, batch, options.search.pad, shortest, device);
    const Padded input = pad(begun, batch, options.search.pad, shortest, device);
    const at::Tensor following = pad(ended, batch, options.search.pad, shortest, device).tokens;
    at::Tensor logits = model->forward(source.tokens, input.tokens, source.padding, input.padding);
    if (logits.scalar_type() != at::kDouble) logits = logits.to(at::kFloat);
    const at::Tensor scores = (logits.gather(2, following.unsqueeze(2)).squeeze(2) - logits.logsumexp(2))
                                  .to(at::kDouble)
                                  .cpu()
                                  .contiguous();
    for (size_t row = 0; row < batch.size(); ++row) {
      const double* first = scores.const_data_ptr<double>() + static_cast<int64_t>(row) * scores.size(1);
      results[batch[row]].assign(first, first + ended[batch[row]].size());
    }
  };
  for_each_batch(batches(sources, options), options.exact, work, {});
  return results;
}

}  // namespace quatrain::models
