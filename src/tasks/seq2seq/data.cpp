#include "tasks/seq2seq/data.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "quatrain/train/checkpoint.h"
#include "support/numbers.h"
#include "support/telling.h"
#include "support/text.h"
#include "tasks/data_folder.h"
#include "tasks/seq2seq/bleu_counts.h"
#include "tasks/seq2seq/task.h"
#include "tasks/sequence_keys.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {
namespace {

using data::Pieces;

// The lines of one side of the training set, or of both, one after the other.
PairPieces learn_pieces(const data::LinePairCorpus& corpus, const Seq2SeqTaskOptions& own, uint64_t seed,
                        const std::function<void(const std::string&)>& tell) {
  const auto learn = [&](bool sources, bool targets) {
    const auto reader = corpus.open("train");
    data::LinePair pair;
    bool target_waits = false;
    const auto next = [&](std::string& line) {
      if (target_waits) {
        line = pair.target;
        target_waits = false;
        return true;
      }
      if (!reader->next(pair)) return false;
      line = sources ? pair.source : pair.target;
      target_waits = sources && targets;
      return true;
    };
    data::PieceOptions options = own.pieces;
    options.seed = seed;
    return Pieces::train(next, options, tell);
  };
  if (!own.joint) return {learn(true, false), learn(false, true)};
  const Pieces both = learn(true, true);
  return {both, both};
}

// Those of the files that a recipe names; its options say from then on what they are.
PairPieces named_pieces(Seq2SeqTaskOptions& own) {
  if (own.joint) {
    const Pieces both = load_pieces(own.file, own.pieces);
    return {both, both};
  }
  Pieces target = load_pieces(own.target_file, own.pieces);
  return {load_pieces(own.file, own.pieces), std::move(target)};
}

// Those of a checkpoint, or of the files that a recipe names; what they are is in its options from then on.
PairPieces known_pieces(Recipe& recipe, const DataRequest& request) {
  auto& own = recipe.own<Seq2SeqTaskOptions>();
  if (request.vocabulary.empty()) {
    PairPieces named = named_pieces(own);
    own.check(recipe);  // again
    return named;
  }
  take_options<Seq2SeqTaskOptions>(recipe, request, [&](auto& of_run, const auto& known) {
    of_run.pieces = known.pieces;
    of_run.joint = known.joint;
    if (request.resumes && recipe.weights.empty()) return;  // with other files that is refused
    of_run.file = known.file;
    of_run.target_file = known.target_file;
  });
  own.check(recipe);  // again
  return PairPieces::load(request.vocabulary, own.joint);
}

// Before a training every text needs its places, where positions are learned: they may still be more.
void check_positions(const Recipe& recipe, const std::string& split, const data::EncodedLinePairs& pairs) {
  const auto& own = recipe.own<Seq2SeqTaskOptions>();
  if (own.model.positions() != models::Positions::learned) return;
  int64_t longest = 0;
  for (int64_t i = 0; i < pairs.size(); ++i)
    longest = std::max({longest, pairs.source.length(i), pairs.target.length(i) + 1});
  if (longest > own.model.max_length())
    recipe.refuse("model.max_positions",
                  "must be at least " + std::to_string(longest) + ", the longest text of the " + split +
                      " set with its mark, got " + std::to_string(own.model.max_length()) +
                      " (or take model.positions = sinusoidal)");
}

// Of a set that is scored: sources are cut as where they are translated. Those of trained models are also cut
// where their places end, and targets that are longer have no loss.
data::LinePairLimits limits_of_scoring(const Seq2SeqTaskOptions& own, const Model* trained) {
  data::LinePairLimits limits;
  limits.cut_sources = true;
  limits.max_source = own.limits.max_source;
  const auto* model = dynamic_cast<const Seq2SeqModel*>(trained);
  if (!model || model->most_places() == std::numeric_limits<int64_t>::max()) return limits;
  limits.max_target = model->most_places();
  limits.max_source =
      limits.max_source > 0 ? std::min(limits.max_source, limits.max_target) : limits.max_target;
  return limits;
}

// Pairs as another reader gives them, which are told of, and kept where it is said where.
class WatchedPairs : public data::LinePairReader {
 public:
  WatchedPairs(std::unique_ptr<data::LinePairReader> pairs, std::string set, const DataRequest& request,
               std::vector<data::LinePair>* kept)
      : pairs_(std::move(pairs)), set_(std::move(set)), telling_(request.tell), kept_(kept) {}
  bool next(data::LinePair& pair) override {
    if (!pairs_->next(pair)) return false;
    if (kept_) kept_->push_back(pair);
    ++count_;
    telling_([this] { return set_ + " set: " + grouped(count_) + " pairs read"; });
    return true;
  }
  std::string place() const override { return pairs_->place(); }

 private:
  std::unique_ptr<data::LinePairReader> pairs_;
  std::string set_;
  int64_t count_ = 0;
  Telling telling_;
  std::vector<data::LinePair>* kept_;
};

// Where a batch has far fewer tokens than it may, because its pairs are limited too.
std::string note_of_batches(const Recipe& recipe, const data::EncodedLinePairs& pairs) {
  const int64_t most = recipe.own<Seq2SeqTaskOptions>().batch_tokens;
  const double longer = static_cast<double>(std::max(pairs.source.numbers(), pairs.target.numbers())) /
                        static_cast<double>(pairs.size());
  const auto tokens = std::llround(static_cast<double>(recipe.batch) * longer);
  if (most == 0 || 2 * tokens > most || recipe.batch >= pairs.size()) return "";
  return "train.batch = " + std::to_string(recipe.batch) + " pairs have about " + grouped(tokens) +
         " tokens, and train.batch_tokens = " + grouped(most) + " are not reached: raise train.batch to " +
         "fill batches";
}

// Where a set is missing that the folder may have under another name.
std::string note_of_unread(const data::LinePairCorpus& corpus) {
  constexpr size_t kMost = 8;
  std::vector<std::string> sets = corpus.unread();
  if (sets.empty() || (corpus.has("dev") && corpus.has("test"))) return "";
  const size_t count = sets.size();
  sets.resize(std::min(count, kMost));
  return "the sets " + join(sets) + (count > kMost ? " and " + std::to_string(count - kMost) + " more" : "") +
         " in " + corpus.files("train").front().parent_path().string() +
         " are not read: the files of a dev set are called dev, and those of a test set test";
}

}  // namespace

PairData::PairData(Recipe recipe, std::unique_ptr<data::LinePairCorpus> corpus, PairPieces pieces,
                   const DataRequest& request)
    : Data(std::move(recipe)),
      corpus_(std::move(corpus)),
      pieces_(std::move(pieces)),
      only_scored_(!request.split.empty()),
      scoring_(limits_of_scoring(recipe_.own<Seq2SeqTaskOptions>(), only_scored_ ? request.model : nullptr)),
      vocabulary_note_(note_of_vocabulary(request)),
      sets_(std::make_shared<std::map<std::string, PairSet, std::less<>>>()),
      checksums_(std::make_shared<Checksums>()) {
  const auto& own = recipe_.own<Seq2SeqTaskOptions>();
  for (const char* split : {"train", "dev", "test"}) {
    if (!corpus_->has(split) || (only_scored_ && request.split != split)) continue;
    PairSet& set = (*sets_)[split];
    const bool trains = !only_scored_ && std::string_view(split) == "train";
    WatchedPairs pairs(corpus_->open(split), split, request, trains ? nullptr : &set.lines);
    set.encoded = std::make_shared<data::EncodedLinePairs>(
        data::encode(pairs, pieces_.source, pieces_.target, trains ? own.limits : scoring_));
    add_checksums(*checksums_, corpus_->files(split));
    if (!only_scored_) check_positions(recipe_, split, *set.encoded);
  }
}

data::LinePairLoaderOptions training_batches(const Recipe& recipe) {
  data::LinePairLoaderOptions options;
  options.batch_size = recipe.batch;
  options.batch_tokens = recipe.own<Seq2SeqTaskOptions>().batch_tokens;
  options.seed = recipe.train.seed;
  return options;
}

std::vector<Input> PairData::inputs(std::string_view split, const Recipe& recipe, int64_t size,
                                    int64_t count) const {
  const PairSet& set = sets_->find(split)->second;
  data::LinePairLoaderOptions options;
  options.shuffle = false;
  if (split == "train") options = training_batches(recipe);
  options.batch_size = std::min(size, set.encoded->size());
  data::LinePairLoader loader(set.encoded, options);
  std::vector<Input> inputs;
  for (int64_t i = 0; i < std::min(count, loader.batches()); ++i) {
    const auto batch = loader.batch(0, i);
    inputs.push_back(
        {{batch.source, batch.target, batch.source_padding, batch.target_padding}, batch.tokens});
  }
  return inputs;
}

std::unique_ptr<Model> PairData::make_model(const Recipe& recipe) const {
  return std::make_unique<Seq2SeqModel>(recipe, pieces_);
}

std::unique_ptr<train::Task> PairData::make_task(std::shared_ptr<Model> model) const {
  return std::make_unique<Seq2SeqTask>(std::dynamic_pointer_cast<Seq2SeqModel>(std::move(model)), sets_,
                                       checksums_, corpus_->text(), corpus_->groups(), only_scored_);
}

std::vector<std::string> PairData::notes() const {
  std::vector<std::string> all = vocabulary_note_;
  for (std::string& note : notes_of(corpus_->bad(), "pair")) all.push_back(std::move(note));
  const auto& own = recipe_.own<Seq2SeqTaskOptions>();
  const char* const places = "model.max_positions";
  for (const auto& [split, set] : *sets_) {
    const bool trains = set.lines.empty();
    const data::PairsBeyond& beyond = set.encoded->left_out;
    for (const auto& [count, limit] : {std::pair{beyond.max_source, "task.max_source"},
                                       {beyond.max_target, trains ? "task.max_target" : places},
                                       {beyond.max_ratio, "task.max_ratio"}})
      if (count > 0)
        all.push_back(split + " set: " + counted(count, "pair") + " left out" +
                      (trains ? "" : " of the loss") + ", beyond " + limit);
    if (set.encoded->cut > 0)
      all.push_back(split + " set: " + counted(set.encoded->cut, "source") + " cut at " +
                    std::to_string(scoring_.max_source) + " tokens (" +
                    (scoring_.max_source == own.limits.max_source ? "task.max_source" : places) + ")");
  }
  if (const auto train = sets_->find("train"); train != sets_->end() && !only_scored_)
    for (std::string note : {note_of_unread(*corpus_), note_of_batches(recipe_, *train->second.encoded)})
      if (!note.empty()) all.push_back(std::move(note));
  if (corpus_->groups().empty())  // answers of several words
    all.push_back("BLEU is sacrebleu's: " + scores::bleu_signature(bleu_tokenizer(corpus_->text())));
  return all;
}

std::unique_ptr<Data> load_pairs(Recipe recipe, const DataRequest& request) {
  auto& own = recipe.own<Seq2SeqTaskOptions>();
  settle_folder(own.source.reader, own.source.folder, data::line_pair_readers(), request.folder, recipe.name);
  for (std::string* file : {&own.file, &own.target_file})
    if (!file->empty()) *file = find_data_file(*file, own.source.folder);
  data::LinePairSource source = own.source;
  source.only = request.split;
  auto corpus = data::open_line_pairs(source);
  own.source.text = corpus->text();
  const auto* model = dynamic_cast<const Seq2SeqModel*>(request.model);
  const bool learned = request.vocabulary.empty() && own.file.empty();
  PairPieces pieces = model     ? model->pieces
                      : learned ? learn_pieces(*corpus, own, recipe.train.seed, request.tell)
                                : known_pieces(recipe, request);
  return std::make_unique<PairData>(std::move(recipe), std::move(corpus), std::move(pieces), request);
}

}  // namespace quatrain::tasks
