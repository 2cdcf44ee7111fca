#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quatrain/data/line_pair_loader.h"
#include "quatrain/data/line_pair_source.h"
#include "quatrain/tasks/kind.h"
#include "tasks/seq2seq/model.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {

/// One set of pairs.
struct PairSet {
  std::shared_ptr<const data::EncodedLinePairs> encoded;
  std::vector<data::LinePair> lines;  ///< to be searched for and scored; none of a set to train on
};

/// Pairs of lines, and the pieces of the training set or those of a trained model.
class PairData : public Data {
 public:
  PairData(Recipe recipe, std::unique_ptr<data::LinePairCorpus> corpus, PairPieces pieces,
           const DataRequest& request);

  bool has(std::string_view split) const override { return sets_->contains(split); }
  const PairSet& set(std::string_view split) const { return sets_->find(split)->second; }  ///< that it has
  /// {source, target, source_padding, target_padding}.
  std::vector<Input> inputs(std::string_view split, const Recipe& recipe, int64_t size,
                            int64_t count) const override;
  std::unique_ptr<Model> make_model(const Recipe& recipe) const override;
  std::unique_ptr<train::Task> make_task(std::shared_ptr<Model> model) const override;
  std::vector<std::string> notes() const override;
  Checksums checksums() const override { return *checksums_; }

 private:
  std::unique_ptr<data::LinePairCorpus> corpus_;
  PairPieces pieces_;
  bool only_scored_;
  data::LinePairLimits scoring_;  // of sets that are not trained on
  std::vector<std::string> vocabulary_note_;
  std::shared_ptr<std::map<std::string, PairSet, std::less<>>> sets_;
  std::shared_ptr<Checksums> checksums_;  // of the files, by name
};

/// See Kind::load_data.
std::unique_ptr<Data> load_pairs(Recipe recipe, const DataRequest& request);

/// How a training set is cut into batches.
data::LinePairLoaderOptions training_batches(const Recipe& recipe);

}  // namespace quatrain::tasks
