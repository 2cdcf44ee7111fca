#pragma once

#include <memory>
#include <string>

#include "quatrain/data/dataset.h"
#include "quatrain/data/vocabulary.h"
#include "quatrain/models/text_classifier.h"
#include "quatrain/tasks/recipe.h"
#include "quatrain/tasks/text_classification.h"

namespace quatrain::tasks {

/// What a recipe of kind text_classification sets.
struct TextOptions : Options {
  TextOptions();

  data::Source source;
  std::string split;  ///< source.shares as it was written; empty: the sets are files of their own
  data::VocabularyOptions vocabulary;
  std::string vectors;                        ///< file of pretrained word vectors; empty: none
  models::TextClassifierOptions model{0, 0};  ///< its sizes of words and labels come with the data
  TextClassificationOptions task;

  std::unique_ptr<Options> clone() const override { return std::make_unique<TextOptions>(*this); }
  void describe(train::Keys& keys) override;
  void check(const Recipe& recipe) const override;
};

}  // namespace quatrain::tasks
