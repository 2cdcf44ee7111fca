#include "tasks/text_classification/data.h"

#include <torch/types.h>

#include "quatrain/data/loader.h"
#include "quatrain/data/vectors.h"
#include "tasks/data_folder.h"
#include "tasks/text_classification/model.h"
#include "tasks/text_classification/options.h"
#include "tasks/words.h"
#include "train/checksum.h"

namespace quatrain::tasks {
namespace {

// What tells a set from all others: its texts, with their labels' names and their groups.
std::string checksum_of(const std::vector<data::Example>& examples, const std::vector<std::string>& labels) {
  std::string all;
  for (const auto& example : examples)
    all += labels[static_cast<size_t>(example.label)] + "\t" + std::to_string(example.group) + "\t" +
           example.text + "\n";
  return train::checksum(all);
}

std::vector<int64_t> labels_of(const std::vector<data::Example>& examples) {
  std::vector<int64_t> labels;
  for (const auto& example : examples) labels.push_back(example.label);
  return labels;
}

}  // namespace

TextData::TextData(Recipe recipe, data::Splits splits, data::Vocabulary vocabulary, int64_t width_of_run,
                   std::vector<std::string> notes)
    : Data(std::move(recipe)),
      splits_(std::move(splits)),
      vocabulary_(std::move(vocabulary)),
      width_of_run_(width_of_run),
      notes_(std::move(notes)) {
  if (recipe_.own<TextOptions>().source.folder.empty()) return;
  for (const char* set : {"train", "dev", "test"})
    if (has(set)) checksums_[std::string(set) + ".texts"] = checksum_of(examples(set), splits_.labels);
}

const std::vector<data::Example>& TextData::examples(std::string_view split) const {
  static const std::vector<data::Example> none;
  if (split == "train") return splits_.train;
  if (split == "dev") return splits_.dev;
  return split == "test" ? splits_.test : none;
}

std::vector<Input> TextData::inputs(std::string_view split, const Recipe& recipe, int64_t size,
                                    int64_t count) const {
  const auto& texts = examples(split);
  data::LoaderOptions options;
  options.batch_size = std::min<int64_t>(size, static_cast<int64_t>(texts.size()));
  if (split == "train") options.seed = recipe.train.seed;
  const auto& own = recipe.own<TextOptions>();
  data::Loader loader(data::encode(texts, splits_.tokenizer, vocabulary_, own.task.max_length), options);
  std::vector<Input> inputs;
  for (int64_t i = 0; i < std::min(count, loader.batches()); ++i) {
    const data::Batch batch = loader.batch(0, i);
    inputs.push_back(
        {{batch.tokens, batch.padding}, batch.padding.numel() - batch.padding.sum().item<int64_t>()});
  }
  return inputs;
}

std::unique_ptr<Model> TextData::make_model(const Recipe& recipe) const {
  const auto& own = recipe.own<TextOptions>();
  at::Tensor vectors;
  if (!own.vectors.empty() && width_of_run_ == 0)
    vectors = data::load_vectors(own.vectors, vocabulary_, kSeedOfUnknown).values;
  const int64_t width = own.vectors.empty() ? 0 : vectors.defined() ? vectors.size(1) : width_of_run_;
  auto model = std::make_unique<TextModel>(recipe, vocabulary_, splits_.labels, width);
  if (vectors.defined()) model->classifier->set_embeddings(vectors);
  return model;
}

std::unique_ptr<train::Task> TextData::make_task(std::shared_ptr<Model> model) const {
  const auto& text = dynamic_cast<const TextModel&>(*model);
  TextClassificationOptions options = text.recipe().own<TextOptions>().task;
  options.batch_size = text.recipe().batch;
  options.seed = text.recipe().train.seed;
  options.recipe = to_toml(text.recipe());
  options.checksums = checksums_;
  return std::make_unique<TextClassification>(text.classifier, splits_, text.vocabulary, options);
}

std::unique_ptr<Data> load_text(Recipe recipe, const DataRequest& request) {
  auto& own = recipe.own<TextOptions>();
  const std::string folder = request.folder.empty() ? own.source.folder.string() : request.folder;
  if (own.source.reader == "agreement" && !folder.empty()) own.source.reader = "sva";
  settle_folder(own.source.reader, own.source.folder, data::readers(), folder, recipe.name);
  if (!own.vectors.empty()) own.vectors = find_data_file(own.vectors, own.source.folder);
  const auto* model = dynamic_cast<const TextModel*>(request.model);
  const bool has_words = !model && !request.vocabulary.empty();
  if (has_words) take_word_options<TextOptions>(recipe, request);
  data::Source source = own.source;
  source.only = request.split;
  if (model && !source.only.empty()) {
    source.labels = model->labels;
    if (std::filesystem::is_directory(source.folder)) source.shares.reset();  // a set, not a file to be cut
  }
  data::Splits splits = data::load(source);
  std::vector<std::string> notes = note_of_vocabulary(request);
  note_head(notes, request, splits.labels, kLabelsFile);
  own.source.tokenizer = splits.tokenizer;
  if (model) check_same_labels(splits.labels, model->labels);
  data::Vocabulary vocabulary = model ? model->vocabulary
                                : has_words
                                    ? data::Vocabulary::load(request.vocabulary / kVocabularyFile)
                                    : data::Vocabulary::build(splits.train, splits.tokenizer, own.vocabulary);
  if (!request.split.empty())
    for (auto [name, examples] :
         {std::pair{"train", &splits.train}, std::pair{"dev", &splits.dev}, std::pair{"test", &splits.test}})
      if (request.split != name) std::vector<data::Example>().swap(*examples);
  if (!model) notes.push_back(label_counts(splits.labels, labels_of(splits.train), "texts"));
  const int64_t width =
      has_words ? stored_vectors(request.vocabulary / "model.safetensors", TextModel::kWords).size(1) : 0;
  return std::make_unique<TextData>(std::move(recipe), std::move(splits), std::move(vocabulary), width,
                                    std::move(notes));
}

}  // namespace quatrain::tasks
