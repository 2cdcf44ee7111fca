#include "tasks/seq2seq/task.h"

#include <torch/enum.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>

#include <cmath>

#include "quatrain/nn/parameters.h"
#include "quatrain/scores/bleu.h"
#include "quatrain/scores/chrf.h"
#include "quatrain/train/session.h"
#include "tasks/seq2seq/bleu_counts.h"
#include "tasks/seq2seq/kind.h"
#include "train/run_files.h"

namespace quatrain::tasks {
namespace {

namespace F = torch::nn::functional;

constexpr int64_t kEvaluationTokens = 4096;  // of a batch whose loss is computed, and that are given scores

// The sum of the losses of a batch's tokens. Only places that hold a token are given scores; where nothing
// is learned of them, those of a long target one portion after the other, since together they would not fit
// into memory.
at::Tensor token_losses(const models::Ensemble& ensemble, const data::LinePairBatch& batch,
                        double smoothing) {
  std::vector<at::Tensor> hidden;
  for (models::Seq2Seq network : ensemble.models)
    hidden.push_back(network
                         ->hidden(batch.target, network->encode(batch.source, batch.source_padding),
                                  batch.target_padding, batch.source_padding)
                         .flatten(0, 1));
  const at::Tensor places = batch.target_padding.logical_not().flatten().nonzero().squeeze(1);
  const auto loss_of = [&](const at::Tensor& some) {
    std::vector<at::Tensor> scores;
    for (size_t i = 0; i < hidden.size(); ++i) {
      models::Seq2Seq network = ensemble.models[i];
      scores.push_back(network->scores(hidden[i].index_select(0, some)));
    }
    return F::cross_entropy(models::Ensemble::mean(scores), batch.following.flatten().index_select(0, some),
                            F::CrossEntropyFuncOptions().label_smoothing(smoothing).reduction(torch::kSum));
  };
  if (at::GradMode::is_enabled() || places.size(0) <= kEvaluationTokens) return loss_of(places);
  at::Tensor sum;
  for (const at::Tensor& some : places.split(kEvaluationTokens))
    sum = sum.defined() ? sum + loss_of(some) : loss_of(some);
  return sum;
}

}  // namespace

Seq2SeqTask::Seq2SeqTask(std::shared_ptr<Seq2SeqModel> model, std::shared_ptr<const Sets> sets,
                         std::shared_ptr<const Checksums> checksums, data::TextForm text,
                         std::vector<std::string> groups, bool only_scored)
    : model_(std::move(model)),
      sets_(std::move(sets)),
      checksums_(std::move(checksums)),
      text_(text),
      groups_(std::move(groups)) {
  if (const auto found = sets_->find("train"); found != sets_->end() && !only_scored)
    loader_.emplace(found->second.encoded, training_batches(model_->recipe()));
}

train::BatchLoss Seq2SeqTask::loss(int64_t epoch, int64_t index) {
  const auto batch = loader_->batch(epoch, index).to(train::device_of(model_->module()));
  const at::Tensor sum = token_losses(model_->network, batch, model_->own().label_smoothing);
  return {sum / static_cast<double>(batch.tokens), batch.tokens};
}

std::string Seq2SeqTask::describe_batch(int64_t epoch, int64_t index) {
  return train::Task::describe_batch(epoch, index) + ": training pairs " +
         list_of(loader_->batch(epoch, index).indices);
}

train::Selection Seq2SeqTask::selection() const {
  return selection_by(model_->recipe().selecting());
}

double Seq2SeqTask::loss_of(const PairSet& set, const std::function<void()>& after_batch) {
  data::LinePairLoaderOptions options;
  options.batch_tokens = kEvaluationTokens;
  options.shuffle = false;
  data::LinePairLoader loader(set.encoded, options);
  const models::Ensemble ensemble = model_->ensemble();
  double sum = 0;
  int64_t tokens = 0;
  for (int64_t i = 0; i < loader.batches(); ++i) {
    const auto batch = loader.batch(0, i).to(train::device_of(model_->module()));
    sum += token_losses(ensemble, batch, 0).item<double>();
    tokens += batch.tokens;
    if (after_batch) after_batch();
  }
  return sum / static_cast<double>(tokens);
}

train::Evaluation Seq2SeqTask::evaluate(std::string_view split, const std::function<void()>& after_batch) {
  const auto found = sets_->find(split);
  TORCH_CHECK(found != sets_->end(), "seq2seq: the data have no '", split, "' set");
  const PairSet& set = found->second;
  train::Evaluation result;
  auto& figures = result.figures;
  figures["loss"] = loss_of(set, after_batch);
  figures["perplexity"] = std::exp(figures["loss"]);
  figures["count"] = static_cast<double>(set.lines.empty() ? set.encoded->size() : std::ssize(set.lines));
  const auto& own = model_->own();
  models::TranslationOptions how = own.translation;
  const bool training = loader_ && split == "dev";
  // While it trains only as many lines as are shown, and greedily.
  const bool all = !training || own.select != SelectBy::loss;
  if (training) how.exact = false;
  if (!all) how.search.beam = how.search.best = 1;
  std::vector<std::string> lines;
  std::vector<std::vector<int64_t>> sources, targets;
  const size_t count = all ? set.lines.size() : std::min(set.lines.size(), static_cast<size_t>(own.samples));
  for (size_t i = 0; i < count; ++i) {
    lines.push_back(set.lines[i].source);
    sources.push_back(model_->encode(lines.back()).tokens);
  }
  for (auto& found : model_->translate(sources, how, {}, after_batch))
    targets.push_back(std::move(found.front().tokens));
  const auto answers = model_->write(lines, sources, targets);

  const auto tokenizer = bleu_tokenizer(text_);
  const bool has_ngrams =
      groups_.empty();  // answers of one word, which only kinds of them break down, do not
  scores::BleuCounts bleu;
  train::ExampleCounts bleu_examples = bleu_columns();
  scores::ChrfCounts chrf;
  int64_t right = 0, unchanged = 0;
  std::map<int64_t, std::pair<int64_t, int64_t>> by_group;  // right, all
  std::string hypotheses;
  for (size_t i = 0; i < count; ++i) {
    const std::string& answer = answers[i].text;
    const std::string target = data::whole_words(set.lines[i].target, text_);
    if (training && i < static_cast<size_t>(own.samples))
      result.samples.push_back(set.lines[i].source + " -> " + answer + "  [" + target + "]");
    if (!all) continue;
    hypotheses += answer + "\n";
    const bool same = answer == target;
    right += same;
    result.predictions.push_back(same);
    result.targets.push_back(1);
    if (set.lines[i].group >= 0) {
      auto& [right_there, all_there] = by_group[set.lines[i].group];
      right_there += same;
      ++all_there;
    }
    if (!has_ngrams) continue;
    unchanged += answer == data::whole_words(set.lines[i].source, text_);
    const scores::BleuCounts of_line = scores::bleu_counts(answer, target, tokenizer);
    bleu += of_line;
    bleu_examples.examples.push_back(bleu_values(of_line));
    chrf += scores::chrf_counts(answer, target);
  }
  if (!all) return result;
  figures["exact"] = static_cast<double>(right) / static_cast<double>(count);
  if (has_ngrams) {
    figures["bleu"] = scores::bleu(bleu);
    figures["chrf"] = scores::chrf(chrf);
    result.counts["bleu"] = std::move(bleu_examples);
    if (own.joint) figures["unchanged"] = static_cast<double>(unchanged) / static_cast<double>(count);
  }
  for (const auto& [group, counts] : by_group) {
    const std::string of = "/kind=" + groups_[static_cast<size_t>(group)];
    figures["exact" + of] = static_cast<double>(counts.first) / static_cast<double>(counts.second);
    figures["count" + of] = static_cast<double>(counts.second);
  }
  result.files[std::string(split) + ".hypotheses.txt"] = std::move(hypotheses);
  return result;
}

void Seq2SeqTask::store(const std::filesystem::path& folder) const {
  model_->store(folder);
  store_checksums(*checksums_, folder);
}

train::Figures Seq2SeqTask::facts() {
  const nn::ParameterReport report = nn::parameter_report(model_->module());
  const auto& pieces = model_->pieces;
  const auto train = sets_->find("train");
  return {{"encoder_parameters", static_cast<double>(report.encoder)},
          {"vocabulary_size", static_cast<double>(pieces.target.size())},
          {"train_pairs", static_cast<double>(train == sets_->end() ? 0 : train->second.encoded->size())}};
}

}  // namespace quatrain::tasks
