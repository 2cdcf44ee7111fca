#include "tasks/speech/data.h"

#include <torch/nn/utils/rnn.h>
#include <torch/types.h>

#include <algorithm>
#include <optional>

#include "quatrain/data/derivatives.h"
#include "tasks/speech/preparation.h"
#include "tasks/speech/task.h"

namespace quatrain::tasks {
namespace {

namespace rnn = torch::nn::utils::rnn;

constexpr int64_t kScoredFrames = 40000;  // of a batch that is scored, padding included

SpeechParts learn_parts(const SpeechTaskOptions& own, SpeechClasses classes, const SpeechSplit& train) {
  SpeechParts parts{std::move(classes), {}};
  if (own.objective == Objective::frames) {
    parts.transitions.emplace(parts.classes.size());
    for (const int64_t i : train.usable)
      parts.transitions->add(frame_classes(own, train.set->utterance(i), train.set->frames(i)));
  }
  return parts;
}

data::Normalisation measure(const SpeechTaskOptions& own, const SpeechSplit& train) {
  auto all = SpeechModel::empty_normalisation(own);
  for (const int64_t i : train.usable) all.add(features_of(own, *train.set, i));
  return all;
}

std::vector<data::LengthBatches::Lengths> lengths_of(const SpeechSplit& split) {
  std::vector<data::LengthBatches::Lengths> all;
  for (const int64_t i : split.usable) all.push_back({split.set->frames(i), 0, 0});
  return all;
}

}  // namespace

at::Tensor features_of(const SpeechTaskOptions& own, const data::SpeechSet& set, int64_t i) {
  return data::Derivatives(own.derivatives)(set.energies(i));
}

SpeechRows::SpeechRows(const SpeechSplit& split, const SpeechModel& model) : split_(split), model_(model) {
  if (model.own().normalise == NormaliseBy::training) training_ = model.training_normalisation();
}

at::Tensor SpeechRows::operator()(int64_t i, const uint64_t* mask_seed) const {
  const auto& own = model_.own();
  at::Tensor features = features_of(own, *split_.set, i);
  switch (own.normalise) {
    case NormaliseBy::none:
      break;
    case NormaliseBy::training:
      features = training_->apply(features);
      break;
    case NormaliseBy::speaker:
      features = split_.speakers.at(split_.set->utterance(i).speaker).apply(features);
      break;
    case NormaliseBy::utterance: {
      auto of_it = SpeechModel::empty_normalisation(own);
      of_it.add(features);
      features = of_it.apply(features);
    }
  }
  if (mask_seed && own.masks.band_masks + own.masks.time_masks > 0)
    features = data::spec_augment(features, own.bank.bands, own.masks, *mask_seed);
  return model_.stacked(features);
}

data::LengthBatches training_order(const SpeechSplit& split, const Recipe& recipe) {
  const auto& own = recipe.own<SpeechTaskOptions>();
  int64_t room = 0;  // no limit
  if (own.batch_seconds > 0)
    room = std::max<int64_t>(1, static_cast<int64_t>(own.batch_seconds / own.frame_seconds()));
  return {lengths_of(split), {.most = recipe.batch, .room = room, .seed = recipe.train.seed}};
}

data::LengthBatches scoring_order(const SpeechSplit& split, int64_t most) {
  return {lengths_of(split), {.most = most, .room = kScoredFrames, .shuffle = false}};
}

std::vector<Input> SpeechData::inputs(std::string_view split, const Recipe& recipe, int64_t size,
                                      int64_t count) const {
  const SpeechSplit& of = splits_->find(split)->second;
  const SpeechModel model(recipe, parts_, training_);
  const SpeechRows rows_of(of, model);
  auto order = split == "train" ? training_order(of, recipe) : scoring_order(of, size);
  std::vector<Input> inputs;
  for (int64_t batch = 0; batch < std::min(count, order.batches()); ++batch) {
    std::vector<at::Tensor> rows;
    int64_t frames = 0;
    for (const int64_t place : order.batch(0, batch)) {
      if (static_cast<int64_t>(rows.size()) == size) break;
      const int64_t i = of.usable[static_cast<size_t>(place)];
      rows.push_back(rows_of(i));
      frames += of.set->frames(i);
    }
    const auto packed = rnn::pack_sequence(rows, /*enforce_sorted=*/true);
    inputs.push_back({{packed.data(), packed.batch_sizes()}, frames});
  }
  return inputs;
}

std::unique_ptr<Model> SpeechData::make_model(const Recipe& recipe) const {
  return std::make_unique<SpeechModel>(recipe, parts_, training_);
}

std::unique_ptr<train::Task> SpeechData::make_task(std::shared_ptr<Model> model) const {
  return std::make_unique<SpeechTask>(std::dynamic_pointer_cast<SpeechModel>(std::move(model)), splits_,
                                      checksums_, only_scored_);
}

std::unique_ptr<Data> load_speech_data(Recipe recipe, const DataRequest& request) {
  PreparedSpeech prepared = prepare_speech(recipe, request);
  const auto& own = recipe.own<SpeechTaskOptions>();
  const auto* trained = dynamic_cast<const SpeechModel*>(request.model);
  const auto& splits = prepared.splits;
  SpeechParts parts =
      trained ? trained->parts : learn_parts(own, std::move(prepared.classes), splits.at("train"));
  data::Normalisation training =
      trained ? trained->training_normalisation() : measure(own, splits.at("train"));
  return std::make_unique<SpeechData>(std::move(recipe), std::move(prepared.splits), std::move(parts),
                                      std::move(training), std::move(prepared.notes),
                                      std::move(prepared.checksums), !request.split.empty());
}

SpeechSound load_sound(const std::string& set, const std::string& folder, const SpeechModel& model) {
  Recipe settled = model.recipe();
  auto prepared = prepare_speech(settled, {.folder = folder, .split = set, .model = &model}, Labels::none);
  const auto found = prepared.splits.find(set);
  if (found == prepared.splits.end()) return {};
  return {std::move(found->second), std::move(prepared.notes)};
}

}  // namespace quatrain::tasks
