#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <string>
#include <vector>

#include "quatrain/data/vocabulary.h"

/// What kinds that label texts keep beside a checkpoint's weights.
namespace quatrain::tasks {

/// Writes vocabulary.txt and labels.txt (a label a line).
void store_words(const std::filesystem::path& folder, const data::Vocabulary& vocabulary,
                 const std::vector<std::string>& labels);
std::vector<std::string> read_labels(const std::filesystem::path& folder);

/// Throws a RecipeError where the checkpoint of `train.weights` = `weights` has other words.
void check_same_words(const data::Vocabulary& vocabulary, const std::filesystem::path& checkpoint,
                      const std::string& weights);

/// How wide the vectors of words are that a file of weights has under this name.
int64_t width_of_words(const std::filesystem::path& weights, const std::string& name);

/// Loads a checkpoint's weights; an error asks whether words and labels belong to them.
void load_with_words(torch::nn::Module& module, const std::filesystem::path& weights,
                     const data::Vocabulary& vocabulary, const std::vector<std::string>& labels);

}  // namespace quatrain::tasks
