#include "quatrain/models/translate.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "models/output_projection.h"
#include "models/pair_batches.h"
#include "models/share_out.h"
#include "models/token_lists.h"
#include "nn/check.h"
#include "ops/memory/step_memory.h"
#include "quatrain/models/seq2seq_decoder.h"
#include "quatrain/ops.h"
#include "support/enum_names.h"

namespace quatrain::models {
namespace {

constexpr EnumNames<Projection, 2> kProjections{
    {{Projection::float32, "float32"}, {Projection::bfloat16, "bfloat16"}}};

using PlansOfModels = std::vector<std::shared_ptr<Seq2SeqDecoder::Plans>>;

// Plans of batches that are done, for those that follow: as many as batches were at work at once.
class IdlePlans {
 public:
  explicit IdlePlans(size_t models) : models_(models) {}

  PlansOfModels take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return PlansOfModels(models_);
    PlansOfModels plans = std::move(idle_.back());
    idle_.pop_back();
    return plans;
  }
  void give_back(PlansOfModels plans) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(plans));
  }

 private:
  size_t models_;
  std::mutex mutex_;
  std::vector<PlansOfModels> idle_;
};

// The models at work on one batch, and the target tokens that its sentences may have.
class Batch {
 public:
  Batch(const Ensemble& ensemble, const Padded& source, std::vector<OutputProjection> projections,
        int64_t rows, int64_t capacity, IdlePlans& idle)
      : device_(ensemble.device()), projections_(std::move(projections)), idle_(idle), plans_(idle.take()) {
    for (size_t i = 0; i < plans_.size(); ++i) {
      decoders_.emplace_back(ensemble.models[i], source.tokens, source.padding, rows, capacity, plans_[i]);
      plans_[i] = decoders_.back().plans();
    }
  }
  ~Batch() { idle_.give_back(std::move(plans_)); }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  // Restricts each sentence to its own tokens, by whose places the search knows them from here on.
  void restrict_to(const TokenLists& lists) {
    lists_ = &lists;
    for (OutputProjection& projection : projections_) projection = projection.of(lists.all());
  }

  at::Tensor step(const Tokens& tokens, const Tokens& parents) {
    const at::Tensor sentences = lists_ ? find_sentences(tokens, parents) : at::Tensor();
    const at::Tensor last = at::tensor(lists_ ? tokens_ : tokens, at::kLong).to(device_),
                     before = at::tensor(parents, at::kLong).to(device_);
    for (size_t i = 0; i < decoders_.size(); ++i) {
      const ops::TrafficGuard traffic(static_cast<ops::Traffic>(decoders_[i].bytes_read()));
      const at::Tensor of_rows = projections_[i](decoders_[i].hidden(last, before));
      scores_.push_back(lists_ ? lists_->own(of_rows, sentences) : of_rows);
    }
    at::Tensor mean = Ensemble::mean(scores_);
    scores_.clear();
    if (lists_ && decoders_.size() > 1) lists_->hide(mean, sentences);
    return mean;
  }

 private:
  // Of the rows. Writes the tokens at these places of their lists to `tokens_`.
  at::Tensor find_sentences(const Tokens& places, const Tokens& parents) {
    parents_sentences_.swap(sentences_);
    sentences_.clear(), tokens_.clear();
    for (size_t row = 0; row < places.size(); ++row) {
      const auto parent = static_cast<size_t>(parents[row]);
      sentences_.push_back(parents_sentences_.empty() ? parents[row] : parents_sentences_[parent]);
      tokens_.push_back(lists_->token(static_cast<size_t>(sentences_.back()), places[row]));
    }
    return at::tensor(sentences_, at::kLong).to(device_);
  }

  at::Device device_;
  std::vector<OutputProjection> projections_;
  IdlePlans& idle_;
  PlansOfModels plans_;
  std::vector<Seq2SeqDecoder> decoders_;
  const TokenLists* lists_ = nullptr;
  Tokens sentences_;  // of the rows of the last step
  // Kept from step to step for their memory.
  Tokens parents_sentences_, tokens_;
  std::vector<at::Tensor> scores_;
};

class Translation {
 public:
  Translation(const Ensemble& ensemble, const std::vector<Tokens>& sources,
              const std::vector<Tokens>& prefixes, const Places& places, const TranslationOptions& options)
      : ensemble_(ensemble),
        sources_(sources),
        prefixes_(prefixes),
        options_(options),
        places_(places),
        idle_(ensemble.models.size()) {
    const torch::NoGradGuard no_grad;
    for (const Seq2Seq& model : ensemble.models)
      projections_.emplace_back(model, options.projection, options.exact);
    if (options.shortlist) check_shortlist();
  }

  // The hypotheses of the sources of one batch.
  std::vector<std::vector<Hypothesis>> operator()(const std::vector<size_t>& which) const {
    const at::Device device = ensemble_.device();
    const Padded source = pad(sources_, which, options_.search.pad, places_, device);
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
    const int64_t rows = sentences * options_.search.beam;
    const ops::StepMemory memory;
    const ops::StepMemory::Guard of_all_steps(memory);
    Batch batch(ensemble_, source, projections_, rows, longest + 1, idle_);
    const Step step = [&](const Tokens& tokens, const Tokens& parents) {
      return batch.step(tokens, parents);
    };
    if (!options_.shortlist) return beam_search(step, tasks, options_.search);
    const TokenLists lists = lists_of(which, tasks);
    batch.restrict_to(lists);
    auto found = beam_search(step, tasks, lists.search());
    for (size_t i = 0; i < found.size(); ++i)
      for (Hypothesis& hypothesis : found[i]) hypothesis.tokens = lists.tokens(i, hypothesis.tokens);
    return found;
  }

 private:
  // The lists of a batch, by whose places the tasks are put.
  TokenLists lists_of(const std::vector<size_t>& which, std::vector<SearchTask>& tasks) const {
    TokenLists lists(*options_.shortlist, options_.search, ensemble_.device());
    for (size_t i = 0; i < which.size(); ++i) lists.add(sources_[which[i]], tasks[i].prefix);
    lists.finish();
    for (size_t i = 0; i < which.size(); ++i) {
      tasks[i].prefix = lists.places(i, tasks[i].prefix);
      tasks[i].banned = lists.banned(i);
    }
    return lists;
  }

  void check_shortlist() const {
    const Seq2SeqOptions& model = ensemble_.models.front()->options;
    const Shortlist& shortlist = *options_.shortlist;
    nn::require(
        shortlist.sources() == model.source_vocabulary() && shortlist.targets() == model.target_vocabulary(),
        "translate: the shortlist must be for the model's vocabularies of ", model.source_vocabulary(),
        " and ", model.target_vocabulary(), " tokens, got one for ", shortlist.sources(), " and ",
        shortlist.targets());
    nn::require(options_.search.beam <= shortlist.targets(),
                "translate: beam must be at most the vocabulary's ", shortlist.targets(), " tokens, got ",
                options_.search.beam);
    for (const OutputProjection& projection : projections_)
      nn::require(projection.is_real(),
                  "translate: a shortlist takes rows of a real output layer, and a model's is in an algebra; "
                  "translate without it");
  }

  const Ensemble& ensemble_;
  const std::vector<Tokens>& sources_;
  const std::vector<Tokens>& prefixes_;
  const TranslationOptions& options_;
  const Places& places_;
  std::vector<OutputProjection> projections_;  // of each model
  mutable IdlePlans idle_;
};

}  // namespace

const char* name(Projection projection) {
  return name_of(kProjections, projection);
}

Projection parse_projection(std::string_view text) {
  return parse_name(kProjections, "projection", text);
}

std::vector<std::vector<Hypothesis>> translate(const Ensemble& ensemble, const std::vector<Tokens>& sources,
                                               const TranslationOptions& options,
                                               const std::vector<Tokens>& prefixes,
                                               const std::function<void()>& after_batch) {
  check_pairs("translate", ensemble, sources, options);
  nn::require(prefixes.empty() || prefixes.size() == sources.size(),
              "translate: there must be a prefix for each of the ", sources.size(), " sources, got ",
              prefixes.size());
  const Places places(ensemble, options);
  const Translation translation(ensemble, sources, prefixes, places, options);
  std::vector<PairSize> sizes;
  for (const Tokens& source : sources) sizes.push_back({source.size()});
  std::vector<std::vector<Hypothesis>> results(sources.size());
  for_each_batch(
      sizes, places, options,
      [&](const std::vector<size_t>& batch) {
        try {
          auto found = translation(batch);
          for (size_t i = 0; i < batch.size(); ++i) results[batch[i]] = std::move(found[i]);
        } catch (const NotFiniteError& error) {
          throw NotFiniteError(batch[error.sentence()]);
        }
      },
      after_batch);
  return results;
}

}  // namespace quatrain::models
