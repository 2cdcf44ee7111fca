#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quatrain/data/dataset.h"
#include "quatrain/data/vocabulary.h"
#include "quatrain/tasks/kind.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {

/// Labelled texts and the words of the training set, or those of a trained model.
class TextData : public Data {
 public:
  /// The sets that were not read are empty. width_of_run: of the words' vectors of the run that training
  /// starts from, whose vocabulary this is; else 0.
  TextData(Recipe recipe, data::Splits splits, data::Vocabulary vocabulary, int64_t width_of_run,
           std::vector<std::string> notes);

  bool has(std::string_view split) const override { return !examples(split).empty(); }
  /// {tokens, padding}.
  std::vector<Input> inputs(std::string_view split, const Recipe& recipe, int64_t size,
                            int64_t count) const override;
  std::unique_ptr<Model> make_model(const Recipe& recipe) const override;
  std::unique_ptr<train::Task> make_task(std::shared_ptr<Model> model) const override;
  std::vector<std::string> notes() const override { return notes_; }
  Checksums checksums() const override { return checksums_; }

 private:
  const std::vector<data::Example>& examples(std::string_view split) const;

  data::Splits splits_;
  data::Vocabulary vocabulary_;
  int64_t width_of_run_;
  std::vector<std::string> notes_;
  Checksums checksums_;  // of each set's texts; none of generated ones, which the recipe decides
};

/// See Kind::load_data.
std::unique_ptr<Data> load_text(Recipe recipe, const DataRequest& request);

}  // namespace quatrain::tasks
