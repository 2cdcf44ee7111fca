#include "quatrain/tasks/text_classification.h"

#include <torch/enum.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/types.h>

#include "quatrain/nn/parameters.h"
#include "quatrain/train/session.h"
#include "tasks/task_parts.h"
#include "tasks/text_classification/kind.h"
#include "tasks/words.h"

namespace quatrain::tasks {
namespace {

namespace F = torch::nn::functional;

constexpr const char* kTrain = "train";

// In a fixed order.
data::LoaderOptions scoring(const TextClassificationOptions& options) {
  data::LoaderOptions loading;
  loading.batch_size = options.evaluation_batch_size;
  loading.shuffle = false;
  return loading;
}

}  // namespace

struct TextClassification::Parts {
  models::TextClassifier model;
  data::Vocabulary vocabulary;
  TextClassificationOptions options;
  std::vector<std::string> labels;
  std::string group_name;
  std::optional<data::Loader> train;
  std::map<std::string, data::Loader, std::less<>> evaluated;  // by split, in a fixed order
  std::map<std::string, data::Majority, std::less<>> majority;
};

TextClassification::TextClassification(models::TextClassifier model, const data::Splits& splits,
                                       data::Vocabulary vocabulary, TextClassificationOptions options) {
  TORCH_CHECK(!splits.train.empty() || !splits.dev.empty() || !splits.test.empty(),
              "TextClassification: one of the sets must have an example");
  TORCH_CHECK(model->options.vocabulary_size() == vocabulary.size(),
              "TextClassification: the model is made for ", model->options.vocabulary_size(),
              " words, the vocabulary has ", vocabulary.size());
  TORCH_CHECK(model->options.classes() == static_cast<int64_t>(splits.labels.size()),
              "TextClassification: the model has ", model->options.classes(), " classes, the data ",
              splits.labels.size(), " labels");
  TORCH_CHECK(options.label_smoothing >= 0 && options.label_smoothing < 1,
              "TextClassification: label_smoothing must be in [0, 1), got ", options.label_smoothing);
  const auto encode = [&](const std::vector<data::Example>& examples) {
    return data::encode(examples, splits.tokenizer, vocabulary, options.max_length);
  };
  data::LoaderOptions training;
  training.batch_size = options.batch_size;
  training.seed = options.seed;
  std::optional<data::Loader> loader;
  if (!splits.train.empty()) loader.emplace(encode(splits.train), training);
  std::map<std::string, data::Loader, std::less<>> evaluated;
  std::map<std::string, data::Majority, std::less<>> majority;
  for (const auto& [name, examples] : {std::pair{"dev", &splits.dev}, std::pair{"test", &splits.test}}) {
    if (examples->empty()) continue;
    evaluated.emplace(name, data::Loader(encode(*examples), scoring(options)));
    majority.emplace(name, data::majority(*examples));
  }
  if (loader) majority.emplace(kTrain, data::majority(splits.train));
  parts_ = std::make_unique<Parts>(Parts{std::move(model), std::move(vocabulary), std::move(options),
                                         splits.labels, splits.group_name, std::move(loader),
                                         std::move(evaluated), std::move(majority)});
}

TextClassification::~TextClassification() = default;

torch::nn::Module& TextClassification::model() {
  return *parts_->model;
}

int64_t TextClassification::batches() const {
  return parts_->train ? parts_->train->batches() : 0;
}

train::BatchLoss TextClassification::loss(int64_t epoch, int64_t index) {
  const data::Batch batch = parts_->train->batch(epoch, index).to(train::device_of(*parts_->model));
  const at::Tensor logits = parts_->model->forward(batch.tokens, batch.padding);
  const auto options = F::CrossEntropyFuncOptions().label_smoothing(parts_->options.label_smoothing);
  return {F::cross_entropy(logits, batch.labels, options), batch.size()};
}

std::string TextClassification::describe_batch(int64_t epoch, int64_t index) {
  return train::Task::describe_batch(epoch, index) + ": training examples " +
         list_of(parts_->train->batch(epoch, index).indices);
}

bool TextClassification::has(std::string_view split) const {
  return split == kTrain ? parts_->train.has_value() : parts_->evaluated.contains(split);
}

train::Selection TextClassification::selection() const {
  return selection_by(text_classification().about().figures.front());
}

train::Evaluation TextClassification::evaluate(std::string_view split,
                                               const std::function<void()>& after_batch) {
  // Scored by few: its numbers stand here a second time only then.
  if (split == kTrain && parts_->train && !parts_->evaluated.contains(split))
    parts_->evaluated.emplace(kTrain, data::Loader(parts_->train->set(), scoring(parts_->options)));
  const auto found = parts_->evaluated.find(split);
  TORCH_CHECK(found != parts_->evaluated.end(), "TextClassification: the data have no '", split, "' set");
  data::Loader& loader = found->second;
  train::Evaluation result;
  result.predictions.resize(static_cast<size_t>(loader.examples()));
  result.targets.resize(static_cast<size_t>(loader.examples()));
  std::vector<int64_t> groups(result.targets.size());
  double loss = 0;
  for (int64_t b = 0; b < loader.batches(); ++b) {
    const data::Batch batch = loader.batch(0, b);
    const data::Batch moved = batch.to(train::device_of(*parts_->model));
    const at::Tensor logits = parts_->model->forward(moved.tokens, moved.padding).to(at::kFloat);
    loss += F::cross_entropy(logits, moved.labels, F::CrossEntropyFuncOptions().reduction(torch::kSum))
                .item<double>();
    const at::Tensor answers = logits.argmax(1).cpu();
    const auto answer = answers.accessor<int64_t, 1>();
    const auto label = batch.labels.accessor<int64_t, 1>();
    const auto group = batch.groups.accessor<int64_t, 1>();
    for (int64_t i = 0; i < batch.size(); ++i) {
      const auto place = static_cast<size_t>(batch.indices[static_cast<size_t>(i)]);
      result.predictions[place] = answer[i];
      result.targets[place] = label[i];
      groups[place] = group[i];
    }
    if (after_batch) after_batch();
  }
  const data::Majority& majority = parts_->majority.find(split)->second;
  add_label_figures(result, split, parts_->labels);
  result.figures["loss"] = loss / static_cast<double>(loader.examples());
  result.figures["majority"] = majority.overall.share();
  add_group_figures(result, groups, majority,
                    [&](int64_t group) { return parts_->group_name + "=" + std::to_string(group); });
  return result;
}

void TextClassification::store(const std::filesystem::path& folder) const {
  store_words(folder, parts_->vocabulary, parts_->labels);
  store_checksums(parts_->options.checksums, folder);
}

std::string TextClassification::recipe() const {
  return parts_->options.recipe;
}

train::Figures TextClassification::facts() {
  const nn::ParameterReport report = nn::parameter_report(*parts_->model);
  return {{"encoder_parameters", static_cast<double>(report.encoder)},
          {"vocabulary_size", static_cast<double>(parts_->vocabulary.size())},
          {"train_examples", static_cast<double>(parts_->train ? parts_->train->examples() : 0)}};
}

}  // namespace quatrain::tasks
