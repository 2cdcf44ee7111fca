#include "tasks/words.h"

#include <ATen/ops/argmax.h>
#include <c10/util/Exception.h>

#include <array>
#include <cstdio>

#include "quatrain/nn/safetensors.h"
#include "quatrain/nn/weights.h"
#include "quatrain/tasks/recipe.h"
#include "support/text.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {

namespace fs = std::filesystem;

void store_words(const fs::path& folder, const data::Vocabulary& vocabulary,
                 const std::vector<std::string>& labels) {
  vocabulary.save(folder / kVocabularyFile);
  write_labels(folder / kLabelsFile, labels);
}

void check_same_labels(const std::vector<std::string>& found, const std::vector<std::string>& of_run) {
  if (found != of_run)
    throw std::runtime_error("the labels in the data (" + join(found) + ") differ from the run's (" +
                             join(of_run) + "): use data with the labels of the run");
}

std::vector<std::string> labelled(const at::Tensor& probabilities, const std::vector<std::string>& labels) {
  const at::Tensor best = probabilities.argmax(1);
  const auto winner = best.accessor<int64_t, 1>();
  const auto share = probabilities.accessor<float, 2>();
  std::vector<std::string> answers;
  for (int64_t row = 0; row < probabilities.size(0); ++row) {
    std::string& answer = answers.emplace_back(labels[static_cast<size_t>(winner[row])]);
    for (int64_t label = 0; label < probabilities.size(1); ++label) {
      std::array<char, 32> number{};
      std::snprintf(number.data(), number.size(), "\t%.4f", static_cast<double>(share[row][label]));
      answer += number.data();
    }
  }
  return answers;
}

at::Tensor stored_vectors(const fs::path& weights, const std::string& name) {
  const auto stored = nn::read_safetensors(weights);
  const auto* embedding = stored.find(name);
  TORCH_CHECK(embedding && embedding->dim() == 2, weights.string(), " has no embeddings");
  return *embedding;
}

void load_with_words(torch::nn::Module& module, const fs::path& folder, const data::Vocabulary& vocabulary,
                     const std::vector<std::string>& labels) {
  load_own_weights(module, folder,
                   "recipe.toml, vocabulary.txt (" + std::to_string(vocabulary.size()) +
                       " words) and labels.txt (" + std::to_string(labels.size()) + " labels)");
}

}  // namespace quatrain::tasks
