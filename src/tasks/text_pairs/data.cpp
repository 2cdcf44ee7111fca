#include "tasks/text_pairs/data.h"

#include <torch/types.h>

#include <algorithm>
#include <stdexcept>

#include "support/numbers.h"
#include "tasks/data_folder.h"
#include "tasks/text_pairs/model.h"
#include "tasks/text_pairs/options.h"
#include "tasks/text_pairs/task.h"
#include "tasks/words.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;

// Files of the same name in several folders are told apart by the folders.
Checksums checksums_of(const std::vector<fs::path>& files) {
  Checksums checksums;
  if (files.empty()) return checksums;
  fs::path common = files.front().parent_path();
  const auto is_above = [&](const fs::path& file) {
    return *file.lexically_relative(common).begin() != "..";
  };
  while (!std::all_of(files.begin(), files.end(), is_above)) common = common.parent_path();
  for (const auto& file : files) {
    std::string name = file.lexically_relative(common).generic_string();
    std::replace(name.begin(), name.end(), '/', '.');
    Checksums one;
    add_checksums(one, {file});
    checksums[name] = one.begin()->second;
  }
  return checksums;
}

// A word whose vector is never trained can as well stand in dev or test alone: its vector says what it is, or
// that it is the same unknown word on both sides.
data::Vocabulary words_of(const data::TextPairSplits& splits, const TextPairTaskOptions& own) {
  std::vector<data::TextPair> pairs = splits.train;
  if (!own.model.train_words)
    for (const auto* other : {&splits.dev, &splits.test})
      pairs.insert(pairs.end(), other->begin(), other->end());
  return data::vocabulary_of(pairs, splits.tokenizer, own.vocabulary);
}

// Without <pad> and <unk>.
int64_t words_in(const data::Vocabulary& vocabulary) {
  return vocabulary.size() - 2;
}

bool has_answer(const std::vector<data::TextPair>& pairs, bool right) {
  return std::any_of(pairs.begin(), pairs.end(),
                     [&](const data::TextPair& pair) { return (pair.label == 1) == right; });
}

// Ranking is learned from right answers beside wrong ones, and MAP is a mean over questions with a right one.
void require_answers(const data::TextPairSplits& splits, const data::TextPairSource& source) {
  std::vector<std::string> relevances;  // of train, dev, test
  for (const auto& file : data::text_pair_files(source))
    if (file.filename() == "sim.txt") relevances.push_back(file.string());
  for (const bool right : {true, false})
    if (!has_answer(splits.train, right))
      throw std::runtime_error("data: " + relevances.at(0) +
                               " must have right answers (1) and wrong ones (0) to train on, got only " +
                               (right ? "0; are the relevances lost?" : "1; are the wrong answers lost?"));
  if (!has_answer(splits.dev, true))
    throw std::runtime_error("data: " + relevances.at(1) +
                             " must have a right answer (1), because MAP on it selects the checkpoint, got "
                             "only 0; are the relevances lost?");
}

}  // namespace

TextPairData::TextPairData(Recipe recipe, data::TextPairSplits splits, data::Vocabulary vocabulary,
                           const DataRequest& request)
    : Data(std::move(recipe)), vocabulary_(std::move(vocabulary)) {
  const auto& own = recipe_.own<TextPairTaskOptions>();
  auto sets = std::make_shared<TextPairSets>();
  for (const auto& [name, pairs] :
       {std::pair{"train", &splits.train}, {"dev", &splits.dev}, {"test", &splits.test}}) {
    if (!request.split.empty() && request.split != name) continue;
    TextPairSets::Set& set = sets->sets[name];
    set.encoded = std::make_shared<data::EncodedTextPairs>(
        data::encode(*pairs, splits.tokenizer, vocabulary_, own.max_length));
    if (!splits.ranked) continue;
    for (const auto& pair : *pairs) {
      set.questions.push_back(pair.question);
      set.documents.push_back(pair.document);
    }
  }
  sets->labels = splits.labels;
  sets->groups = splits.groups;
  sets->group_name = splits.group_name;
  data::TextPairSource source = own.source;
  source.only = request.split;
  sets->checksums = checksums_of(data::text_pair_files(source));
  sets_ = std::move(sets);

  for (std::string& note : notes_of(splits.bad, "pair")) notes_.push_back(std::move(note));
  if (request.model) return;  // a trained model has its words
  note_head(notes_, request, splits.labels, kLabelsFile);
  if (request.split.empty())
    notes_.push_back(label_counts(splits.labels, sets_->sets.at("train").encoded->first.labels, "pairs"));
  if (own.model.train_words)
    for (std::string& note : note_of_vocabulary(request)) notes_.push_back(std::move(note));
  find_vectors(request);
  check_twins();
}

// Those of words that are given, not trained from the start.
void TextPairData::find_vectors(const DataRequest& request) {
  if (!request.vocabulary.empty()) return take_vectors(request);
  const auto& own = recipe_.own<TextPairTaskOptions>();
  if (!own.vectors.empty()) {
    vectors_ = data::load_vectors(own.vectors, vocabulary_, kSeedOfUnknown);
    notes_.push_back("words with a vector in " + fs::path(own.vectors).filename().string() + ": " +
                     grouped(vectors_.found) + " of " + grouped(words_in(vocabulary_)) +
                     "; the others' are drawn");
  } else if (!own.model.train_words) {
    vectors_ = data::draw_vectors(vocabulary_, own.model.word_width, kSeedOfUnknown);
    notes_.push_back(
        "the words' vectors are drawn and are not trained (model.train_words = false): task.vectors names a "
        "file of pretrained ones");
  }
}

// Those of the run from whose weights training starts. Where vectors are not trained, there may be words that
// it does not have.
void TextPairData::take_vectors(const DataRequest& request) {
  const auto& own = recipe_.own<TextPairTaskOptions>();
  const at::Tensor of_run = stored_vectors(request.vocabulary / "model.safetensors", TextPairModel::kWords);
  width_of_run_ = of_run.size(1);
  if (own.model.train_words) return;  // the vocabulary is the run's, too
  const auto known = data::Vocabulary::load(request.vocabulary / kVocabularyFile);
  std::vector<int64_t> here, there;  // the numbers of what both have
  for (int64_t id = 0; id < vocabulary_.size(); ++id) {
    const int64_t of_known = known.id(vocabulary_.word(id));
    if (of_known == data::Vocabulary::kUnknown && id != of_known) continue;
    here.push_back(id), there.push_back(of_known);
  }
  const int64_t all = words_in(vocabulary_), kept = std::ssize(here) - 2;  // <pad> and <unk>
  vectors_ = own.vectors.empty() || kept == all
                 ? data::draw_vectors(vocabulary_, width_of_run_, kSeedOfUnknown)
                 : data::load_vectors(own.vectors, vocabulary_, kSeedOfUnknown);
  if (vectors_.values.size(1) != width_of_run_)
    recipe_.refuse("task.vectors", "must have vectors as long as those of the run's words, " +
                                       std::to_string(width_of_run_) + ", got " +
                                       std::to_string(vectors_.values.size(1)));
  vectors_.values.index_copy_(
      0, at::tensor(here, at::kLong),
      of_run.index_select(0, at::tensor(there, at::kLong)).to(vectors_.values.scalar_type()));
  if (request.resumes) return;
  std::string others;
  if (kept < all)
    others = own.vectors.empty()
                 ? "; the others' are drawn"
                 : "; the others' are taken from " + fs::path(own.vectors).filename().string() + ", or drawn";
  notes_.push_back("words with the vector of " + request.vocabulary.string() + ": " + grouped(kept) + " of " +
                   grouped(all) + others);
}

// The twins share the vocabulary and the vectors.
void TextPairData::check_twins() const {
  const bool trained = recipe_.own<TextPairTaskOptions>().model.train_words;
  for (const auto& settings : recipe_.twins) {
    const Recipe twin = twin_recipe(recipe_, settings);
    if (twin.own<TextPairTaskOptions>().model.train_words != trained)
      twin.refuse("model.train_words", "must be the same for all twins, which share their words");
    check_word_width(twin);
  }
}

int64_t TextPairData::word_width(const Recipe& recipe) const {
  if (width_of_run_ > 0) return width_of_run_;
  return vectors_.values.defined() ? vectors_.values.size(1)
                                   : recipe.own<TextPairTaskOptions>().model.word_width;
}

void TextPairData::check_word_width(const Recipe& recipe) const {
  const PairModelOptions& model = recipe.own<TextPairTaskOptions>().model;
  if (const int64_t width = word_width(recipe);
      model.network == PairNetwork::lstm && width % model.algebra.n != 0)
    recipe.refuse("model.algebra", "must have an n that divides the width of the words' vectors, " +
                                       std::to_string(width) + ", got " + model.algebra.text());
}

data::TextPairLoaderOptions training_pairs(const Recipe& recipe) {
  data::TextPairLoaderOptions options;
  options.batch_size = recipe.batch;
  options.seed = recipe.train.seed;
  options.negatives = recipe.own<TextPairTaskOptions>().negatives;
  return options;
}

std::vector<Input> TextPairData::inputs(std::string_view split, const Recipe& recipe, int64_t size,
                                        int64_t count) const {
  const auto& set = sets_->sets.find(split)->second;
  data::TextPairLoaderOptions options;
  options.shuffle = false;
  if (split == "train") options = training_pairs(recipe);
  options.batch_size = std::min(size, set.encoded->size());
  data::TextPairLoader loader(set.encoded, options);
  std::vector<Input> inputs;
  for (int64_t i = 0; i < std::min(count, loader.batches()); ++i) {
    const auto batch = loader.batch(0, i);
    inputs.push_back({{batch.first, batch.second}, batch.words});
  }
  return inputs;
}

std::unique_ptr<Model> TextPairData::make_model(const Recipe& recipe) const {
  check_word_width(recipe);
  auto model = std::make_unique<TextPairModel>(recipe, vocabulary_, sets_->labels, word_width(recipe));
  if (vectors_.values.defined()) model->set_words(vectors_.values);
  return model;
}

std::unique_ptr<train::Task> TextPairData::make_task(std::shared_ptr<Model> model) const {
  return std::make_unique<TextPairTask>(std::dynamic_pointer_cast<TextPairModel>(std::move(model)), sets_);
}

std::unique_ptr<Data> load_text_pair_data(Recipe recipe, const DataRequest& request) {
  auto& own = recipe.own<TextPairTaskOptions>();
  settle_folder(own.source.reader, own.source.folder, data::text_pair_readers(), request.folder, recipe.name);
  if (!own.vectors.empty()) own.vectors = find_data_file(own.vectors, own.source.folder);
  const auto* model = dynamic_cast<const TextPairModel*>(request.model);
  // Words whose vectors are not trained are those of the data, known to the run or not.
  const bool has_words = !model && !request.vocabulary.empty() && own.model.train_words;
  if (has_words) take_word_options<TextPairTaskOptions>(recipe, request);
  data::TextPairSource source = own.source;
  source.only = request.split;
  if (model && !source.only.empty()) source.labels = model->labels;
  data::TextPairSplits splits = data::load_text_pairs(source);
  own.source.tokenizer = splits.tokenizer;
  if (splits.ranked && request.split.empty() && !request.model) require_answers(splits, own.source);
  if (model) check_same_labels(splits.labels, model->labels);
  data::Vocabulary vocabulary = model       ? model->vocabulary
                                : has_words ? data::Vocabulary::load(request.vocabulary / kVocabularyFile)
                                            : words_of(splits, own);
  return std::make_unique<TextPairData>(std::move(recipe), std::move(splits), std::move(vocabulary), request);
}

}  // namespace quatrain::tasks
