#include "tasks/seq2seq/data.h"

#include <torch/torch.h>

#include <array>

#include "quatrain/train/checkpoint.h"
#include "support/numbers.h"
#include "tasks/data_folder.h"
#include "tasks/seq2seq/task.h"
#include "train/checksum.h"

namespace quatrain::tasks {
namespace {

using data::Pieces;

// The lines of one side of the training set, or of both, one after the other.
PairPieces learn_pieces(const data::PairCorpus& corpus, const Seq2SeqTaskOptions& own, uint64_t seed) {
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
    return Pieces::train(next, options);
  };
  if (!own.joint) return {learn(true, false), learn(false, true)};
  const Pieces both = learn(true, true);
  return {both, both};
}

}  // namespace

PairData::PairData(Recipe recipe, std::unique_ptr<data::PairCorpus> corpus, PairPieces pieces,
                   const std::string& only)
    : Data(std::move(recipe)),
      corpus_(std::move(corpus)),
      pieces_(std::move(pieces)),
      only_scored_(!only.empty()),
      sets_(std::make_shared<std::map<std::string, PairSet, std::less<>>>()),
      checksums_(std::make_shared<std::map<std::string, std::string>>()) {
  const auto& own = recipe_.own<Seq2SeqTaskOptions>();
  for (const char* split : {"train", "dev", "test"}) {
    if (!corpus_->has(split) || (only_scored_ && only != split)) continue;
    PairSet& set = (*sets_)[split];
    const bool trains = !only_scored_ && std::string_view(split) == "train";
    const auto reader = corpus_->open(split);
    set.encoded = std::make_shared<data::EncodedPairs>(
        data::encode(*reader, pieces_.source, pieces_.target, trains ? own.limits : data::PairLimits{}));
    if (trains) {
      for (const auto& file : corpus_->files(split))
        (*checksums_)[file.filename().string()] = train::checksum_of_file(file);
      continue;
    }
    const auto again = corpus_->open(split);
    for (data::LinePair pair; again->next(pair);) set.lines.push_back(pair);
  }
}

data::PairLoader training_loader(const PairSet& set, const Recipe& recipe) {
  const auto& own = recipe.own<Seq2SeqTaskOptions>();
  data::PairLoaderOptions options;
  options.batch_size = recipe.batch;
  options.batch_tokens = own.batch_tokens;
  options.seed = recipe.train.seed;
  return {set.encoded, options};
}

std::vector<Input> PairData::inputs(std::string_view split, const Recipe& recipe, int64_t size,
                                    int64_t count) const {
  const PairSet& set = sets_->find(split)->second;
  Recipe sized = recipe;
  sized.batch = std::min(size, set.encoded->size());
  data::PairLoaderOptions fixed;
  fixed.batch_size = sized.batch;
  fixed.shuffle = false;
  data::PairLoader loader =
      split == "train" ? training_loader(set, sized) : data::PairLoader(set.encoded, fixed);
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
  std::vector<std::string> all;
  for (const auto& bad : corpus_->bad().reasons)
    all.push_back(bad.set + " set: " + counted(bad.count, "pair") + " left out (" + bad.reason +
                  "), the first at " + bad.first);
  for (const auto& [split, set] : *sets_)
    if (set.encoded->left_out > 0)
      all.push_back(split + " set: " + counted(set.encoded->left_out, "pair") +
                    " left out, beyond task.max_source, max_target or max_ratio");
  return all;
}

std::unique_ptr<Data> load_pairs(Recipe recipe, const DataRequest& request) {
  auto& own = recipe.own<Seq2SeqTaskOptions>();
  settle_folder(own.source.reader, own.source.folder, data::pair_readers(), request.folder, recipe.name);
  auto corpus = data::open_pairs(own.source);
  own.source.text = corpus->text();
  const auto* model = dynamic_cast<const Seq2SeqModel*>(request.model);
  PairPieces pieces = model ? model->pieces : learn_pieces(*corpus, own, recipe.train.seed);
  return std::make_unique<PairData>(std::move(recipe), std::move(corpus), std::move(pieces), request.split);
}

}  // namespace quatrain::tasks
