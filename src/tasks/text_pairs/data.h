#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "quatrain/data/text_pair_loader.h"
#include "quatrain/data/vectors.h"
#include "quatrain/tasks/kind.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {

/// The sets of a task as they were read and as numbers; shared by all its twins.
struct TextPairSets {
  struct Set {
    std::shared_ptr<const data::EncodedTextPairs> encoded;
    std::vector<std::string> questions, documents;  ///< their names; empty where nothing is ranked
  };
  std::map<std::string, Set, std::less<>> sets;
  std::vector<std::string> labels, groups;
  std::string group_name;
  Checksums checksums;
};

class TextPairData : public Data {
 public:
  TextPairData(Recipe recipe, data::TextPairSplits splits, data::Vocabulary vocabulary,
               const DataRequest& request);

  bool has(std::string_view split) const override { return sets_->sets.contains(split); }
  /// {first, second}.
  std::vector<Input> inputs(std::string_view split, const Recipe& recipe, int64_t size,
                            int64_t count) const override;
  std::unique_ptr<Model> make_model(const Recipe& recipe) const override;
  std::unique_ptr<train::Task> make_task(std::shared_ptr<Model> model) const override;
  std::vector<std::string> notes() const override { return notes_; }
  Checksums checksums() const override { return sets_->checksums; }

 private:
  void find_vectors(const DataRequest& request);
  void take_vectors(const DataRequest& request);
  void check_twins() const;
  void check_word_width(const Recipe& recipe) const;
  int64_t word_width(const Recipe& recipe) const;

  std::shared_ptr<const TextPairSets> sets_;
  data::Vocabulary vocabulary_;
  data::Vectors vectors_;     // not defined where they start as the model draws them, or come with weights
  int64_t width_of_run_ = 0;  // of the words of the run that training starts from
  std::vector<std::string> notes_;
};

/// How the training set is cut into batches.
data::TextPairLoaderOptions training_pairs(const Recipe& recipe);

/// See Kind::load_data.
std::unique_ptr<Data> load_text_pair_data(Recipe recipe, const DataRequest& request);

}  // namespace quatrain::tasks
