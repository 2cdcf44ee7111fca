#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "quatrain/data/vocabulary.h"
#include "tasks/task_parts.h"

/// What kinds that label texts keep beside a checkpoint's weights, and how they answer.
namespace quatrain::tasks {

/// Words without a vector in a file of vectors are drawn the same in every run, whatever its seed: like those
/// with one they belong to the data.
inline constexpr uint64_t kSeedOfUnknown = 1;

inline constexpr const char* kVocabularyFile = "vocabulary.txt";
inline constexpr const char* kLabelsFile = "labels.txt";

/// Texts become words as those of the run did whose vocabulary is taken.
template <class Own>
void take_word_options(Recipe& recipe, const DataRequest& request) {
  take_options<Own>(recipe, request, [](Own& own, const Own& known) {
    own.vocabulary = known.vocabulary;
    own.source.tokenizer = known.source.tokenizer;
  });
}

/// Writes vocabulary.txt and labels.txt.
void store_words(const std::filesystem::path& folder, const data::Vocabulary& vocabulary,
                 const std::vector<std::string>& labels);

/// Throws where the labels of data are not those of the run that they are given to.
void check_same_labels(const std::vector<std::string>& found, const std::vector<std::string>& of_run);

/// For each row of the probabilities (texts, labels), on the CPU: the likeliest label, then the probability
/// of every label, with tabs between.
std::vector<std::string> labelled(const at::Tensor& probabilities, const std::vector<std::string>& labels);

/// The vectors of words (words, width) that a file of weights has under this name.
at::Tensor stored_vectors(const std::filesystem::path& weights, const std::string& name);

/// load_own_weights of a model of words and labels.
void load_with_words(torch::nn::Module& module, const std::filesystem::path& folder,
                     const data::Vocabulary& vocabulary, const std::vector<std::string>& labels);

}  // namespace quatrain::tasks
