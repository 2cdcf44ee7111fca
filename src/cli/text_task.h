#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "quatrain/data/dataset.h"
#include "quatrain/data/vocabulary.h"
#include "quatrain/models/text_classifier.h"
#include "quatrain/train/recipe.h"
#include "quatrain/train/text_classification.h"
#include "quatrain/train/trainer.h"

/// From a recipe to the things that it names: data, model, task, trainer.
namespace quatrain::cli {

/// The data of a recipe, and the recipe with what they settled: the folder, the reader and the tokenizer.
/// Stored with a run, it says all that evaluation and prediction need.
struct TextData {
  train::Recipe recipe;
  data::Splits splits;
  data::Vocabulary vocabulary;
};

/// Reads or generates the data. `folder` is `--data`; then the recipe's own folder counts, then
/// QUATRAIN_DATA. A reader that needs a folder and has none is a RecipeError.
TextData load_text(train::Recipe recipe, const std::string& folder);

/// A model drawn from the recipe's seed, with the pretrained vectors or the weights to start from it asks
/// for.
models::TextClassifier make_model(const train::Recipe& recipe, const data::Vocabulary& vocabulary,
                                  int64_t classes);

/// A fresh model over the data. `recipe` may be a twin's.
std::unique_ptr<train::TextClassification> make_task(const train::Recipe& recipe, const TextData& data);
/// The same with a model that is there.
std::unique_ptr<train::TextClassification> make_task(const train::Recipe& recipe, const TextData& data,
                                                     models::TextClassifier model);

train::TrainerOptions trainer_options(const train::Recipe& recipe);

/// Sets torch's threads where the recipe names a number.
void set_threads(const train::Recipe& recipe);

/// A trained model with what belongs to it.
struct TrainedText {
  train::Recipe recipe;
  data::Vocabulary vocabulary;
  std::vector<std::string> labels;
  models::TextClassifier model{nullptr};
};

/// Loads the best checkpoint of a run, in evaluation mode.
TrainedText load_trained(const std::filesystem::path& run);
/// The same from the folder of any checkpoint.
TrainedText load_checkpoint(const std::filesystem::path& folder);

}  // namespace quatrain::cli
