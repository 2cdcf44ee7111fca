#include "tasks/speech/task.h"

#include <torch/enum.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/utils/rnn.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "quatrain/nn/parameters.h"
#include "quatrain/train/session.h"
#include "tasks/speech/kind.h"
#include "tasks/speech/report.h"
#include "tasks/task_parts.h"
#include "train/finite.h"

namespace quatrain::tasks {
namespace {

namespace F = torch::nn::functional;
namespace rnn = torch::nn::utils::rnn;

// Joins numbers into one that belongs to them alone, nearly.
uint64_t joined(uint64_t a, uint64_t b) {
  return (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdu;
}

}  // namespace

// Of a batch, longest first.
struct SpeechTask::Scored {
  at::Tensor scores;             // (steps, B, classes), zero behind an utterance's end
  std::vector<int64_t> lengths;  // rows of each
  at::Tensor losses;   // (B); infinite where ctc cannot align, or a token is none of the training set's
  at::Tensor classes;  // of frames: (B, steps), -1 behind the end
  int64_t units = 0;   // what the loss is a mean over
};

SpeechTask::SpeechTask(std::shared_ptr<SpeechModel> model, std::shared_ptr<const SpeechSplits> splits,
                       Checksums checksums, bool only_scored)
    : model_(std::move(model)), splits_(std::move(splits)), checksums_(std::move(checksums)) {
  if (const auto found = splits_->find("train"); found != splits_->end() && !only_scored)
    order_.emplace(training_order(found->second, model_->recipe()));
}

SpeechTask::Scored SpeechTask::score(const SpeechSplit& split, const std::vector<int64_t>& utterances,
                                     const uint64_t* mask_seed) {
  const auto& own = model_->own();
  const auto device = train::device_of(model_->module());
  const SpeechRows rows_of(split, *model_);
  Scored scored;
  std::vector<at::Tensor> rows, wanted;
  std::vector<double> unlearnable;  // of each utterance 0, or infinity where the training set lacks a token
  for (const int64_t i : utterances) {
    const uint64_t seed = mask_seed ? joined(*mask_seed, static_cast<uint64_t>(i)) : 0;
    rows.push_back(rows_of(i, mask_seed ? &seed : nullptr));
    scored.lengths.push_back(rows.back().size(0));
    const auto& targets = split.targets_of(i);
    const bool known = std::ranges::find(targets, -1) == targets.end();
    unlearnable.push_back(
        known || own.objective == Objective::frames ? 0 : std::numeric_limits<double>::infinity());
    wanted.push_back(torch::tensor(own.objective == Objective::frames
                                       ? frame_classes(own, split.set->utterance(i), split.set->frames(i))
                                       : targets,
                                   torch::kLong));
  }
  const auto packed = rnn::pack_sequence(rows, /*enforce_sorted=*/true).to(device);
  const at::Tensor scores = model_->network->forward(packed);
  scored.scores = std::get<0>(rnn::pad_packed_sequence(rnn::PackedSequence(scores, packed.batch_sizes())));
  const at::Tensor lengths = torch::tensor(scored.lengths);
  const at::Tensor values = scored.scores.to(torch::kFloat);
  const at::Tensor no_loss = torch::tensor(unlearnable, torch::kFloat).to(device);
  switch (own.objective) {
    case Objective::ctc: {
      std::vector<int64_t> counts;
      for (const auto& of_one : wanted) counts.push_back(of_one.size(0));
      const at::Tensor tokens = torch::cat(wanted).to(device);
      const at::Tensor tokens_or_any = tokens.clamp_min(SpeechClasses::kBlank + 1);  // of unknown ones
      scored.losses = at::ctc_loss(values.log_softmax(2), tokens_or_any, scored.lengths, counts,
                                   SpeechClasses::kBlank, at::Reduction::None) /
                          torch::tensor(counts, torch::kFloat).clamp_min(1).to(device) +
                      no_loss;
      scored.units = static_cast<int64_t>(utterances.size());
      break;
    }
    case Objective::frames: {
      const auto ignoring = F::CrossEntropyFuncOptions().ignore_index(-1).reduction(torch::kNone);
      scored.classes = rnn::pad_sequence(wanted, /*batch_first=*/true, /*padding_value=*/-1);
      const at::Tensor known = scored.classes.masked_fill(scored.classes >= values.size(2), -1);
      scored.losses = F::cross_entropy(values.permute({1, 2, 0}), known.to(device), ignoring).sum(1);
      scored.units = (known >= 0).sum().item<int64_t>();
      break;
    }
    case Objective::utterance: {
      const at::Tensor means = values.sum(0) / lengths.to(device).unsqueeze(1);
      scored.losses = F::cross_entropy(means, torch::cat(wanted).clamp_min(0).to(device),
                                       F::CrossEntropyFuncOptions().reduction(torch::kNone)) +
                      no_loss;
      scored.units = static_cast<int64_t>(utterances.size());
      break;
    }
  }
  return scored;
}

train::BatchLoss SpeechTask::loss(int64_t epoch, int64_t index) {
  const SpeechSplit& split = splits_->find("train")->second;
  std::vector<int64_t> utterances;
  for (const int64_t place : order_->batch(epoch, index))
    utterances.push_back(split.usable[static_cast<size_t>(place)]);
  const uint64_t seed = joined(model_->recipe().train.seed, static_cast<uint64_t>(epoch));
  const Scored scored = score(split, utterances, &seed);
  return {scored.losses.sum() / static_cast<double>(scored.units), scored.units};
}

std::string SpeechTask::describe_batch(int64_t epoch, int64_t index) {
  const SpeechSplit& split = splits_->find("train")->second;
  std::string names;
  for (const int64_t place : order_->batch(epoch, index))
    names += (names.empty() ? "" : ", ") + split.set->utterance(split.usable[static_cast<size_t>(place)]).id;
  return train::Task::describe_batch(epoch, index) + ": utterances " + names;
}

train::Selection SpeechTask::selection() const {
  return selection_by(model_->recipe().selecting());
}

train::Evaluation SpeechTask::evaluate(std::string_view name, const std::function<void()>& after_batch) {
  const auto found = splits_->find(name);
  TORCH_CHECK(found != splits_->end(), "speech: the data have no '", name, "' set");
  const SpeechSplit& split = found->second;
  const auto& own = model_->own();
  const bool training = order_ && name == "dev";  // by the best path: it is quick
  auto order = scoring_order(split, model_->recipe().batch);
  const auto decoder = make_decoder(*model_, training);
  std::vector<std::vector<HeardToken>> heard(static_cast<size_t>(split.set->size()));
  std::vector<std::vector<int64_t>> frames(heard.size(), {0, 0});  // wrong, all
  double loss = 0;
  int64_t units = 0;
  bool numbers = true;
  for (int64_t batch = 0; batch < order.batches(); ++batch) {
    std::vector<int64_t> utterances;
    for (const int64_t place : order.batch(0, batch))
      utterances.push_back(split.usable[static_cast<size_t>(place)]);
    const Scored scored = score(split, utterances, nullptr);
    const at::Tensor finite = scored.losses.isfinite();
    numbers = numbers && !scored.losses.isnan().any().item<bool>();
    loss += scored.losses.where(finite, torch::zeros_like(scored.losses)).sum().item<double>();
    units += own.objective == Objective::frames ? scored.units : finite.sum().item<int64_t>();
    const at::Tensor scores = scored.scores.cpu();
    for (size_t b = 0; b < utterances.size(); ++b) {
      const auto i = static_cast<size_t>(utterances[b]);
      const int64_t rows = scored.lengths[b];
      const at::Tensor of_one = scores.select(1, static_cast<int64_t>(b)).narrow(0, 0, rows);
      if (own.objective == Objective::frames) {
        const at::Tensor wanted = scored.classes[static_cast<int64_t>(b)].narrow(0, 0, rows);
        frames[i] = {(of_one.argmax(1) != wanted).sum().item<int64_t>(), rows};
      }
      if (!own.has_tokens()) continue;
      decoder->push(of_one);
      heard[i] = std::move(decoder->finish().front().tokens);
    }
    if (after_batch) after_batch();
  }

  train::Evaluation result;
  auto& figures = result.figures;
  SpeechReport report(own);
  auto& errors = result.counts["error_rate"];
  errors.columns = {"errors", "tokens"};
  for (size_t i = 0; i < heard.size(); ++i) {
    const auto counts = report.add(split.set->utterance(static_cast<int64_t>(i)), split.tokens[i], heard[i]);
    errors.examples.push_back({counts.errors(), counts.reference_tokens()});
    if (training && own.has_tokens() && static_cast<int64_t>(i) < own.samples) {
      result.samples.push_back(text_of(own, texts_of(heard[i])) + "  [" + text_of(own, split.tokens[i]) +
                               "]");
    }
  }
  // No number where no text can be learned, which is said, or where the answers are no numbers.
  figures["loss"] =
      numbers && units > 0 ? loss / static_cast<double>(units) : std::numeric_limits<double>::quiet_NaN();
  if (numbers) figures[train::kWithLoss] = static_cast<double>(units);
  figures["count"] = static_cast<double>(heard.size());
  if (own.has_tokens()) {
    figures["error_rate"] = report.counts().error_rate();
    figures["sentence_error_rate"] = report.counts().sentence_error_rate();
    if (!training) {
      result.lines = report.lines();
      result.files = report.files(std::string(name));
    }
  } else {
    result.counts.erase("error_rate");
  }
  if (own.objective == Objective::frames) {
    int64_t wrong = 0, all = 0;
    for (const auto& of_one : frames) wrong += of_one[0], all += of_one[1];
    figures["frame_error"] = all > 0 ? static_cast<double>(wrong) / static_cast<double>(all) : 0;
    result.counts["frame_error"] = {{"wrong", "frames"}, std::move(frames)};
  }
  return result;
}

void SpeechTask::store(const std::filesystem::path& folder) const {
  model_->store(folder);
  store_checksums(checksums_, folder);
}

train::Figures SpeechTask::facts() {
  const int64_t layers =
      nn::parameter_report(model_->module()).total - nn::parameter_report(*model_->network->output).total;
  int64_t frames = 0;
  if (const auto train = splits_->find("train"); train != splits_->end())
    for (const int64_t i : train->second.usable) frames += train->second.set->frames(i);
  const double seconds = static_cast<double>(frames) * model_->own().frame_seconds();
  return {{"encoder_parameters", static_cast<double>(layers)},
          {"classes", static_cast<double>(model_->parts.classes.size())},
          {"train_hours", seconds / 3600}};
}

}  // namespace quatrain::tasks
