#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quatrain/data/dataset.h"
#include "quatrain/data/vocabulary.h"
#include "quatrain/tasks/kind.h"

namespace quatrain::tasks {

/// Labelled texts and the words of the training set, or those of a trained model.
class TextData : public Data {
 public:
  TextData(Recipe recipe, data::Splits splits, data::Vocabulary vocabulary)
      : Data(std::move(recipe)), splits_(std::move(splits)), vocabulary_(std::move(vocabulary)) {}

  bool has(std::string_view split) const override { return !examples(split).empty(); }
  /// {tokens, padding}.
  std::vector<Input> inputs(std::string_view split, const Recipe& recipe, int64_t size,
                            int64_t count) const override;
  std::unique_ptr<Model> make_model(const Recipe& recipe) const override;
  std::unique_ptr<train::Task> make_task(std::shared_ptr<Model> model) const override;

 private:
  const std::vector<data::Example>& examples(std::string_view split) const;

  data::Splits splits_;
  data::Vocabulary vocabulary_;
};

/// See Kind::load_data.
std::unique_ptr<Data> load_text(Recipe recipe, const DataRequest& request);

}  // namespace quatrain::tasks
