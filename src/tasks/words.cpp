#include "tasks/words.h"

#include <c10/util/Exception.h>

#include <fstream>

#include "quatrain/nn/safetensors.h"
#include "quatrain/nn/weights.h"
#include "quatrain/tasks/recipe.h"
#include "support/atomic_file.h"
#include "support/text.h"

namespace quatrain::tasks {

namespace fs = std::filesystem;

void store_words(const fs::path& folder, const data::Vocabulary& vocabulary,
                 const std::vector<std::string>& labels) {
  vocabulary.save(folder / "vocabulary.txt");
  std::string lines;
  for (const std::string& label : labels) lines += label + "\n";
  write_text(folder / "labels.txt", lines);
}

std::vector<std::string> read_labels(const fs::path& folder) {
  std::ifstream file = open_named(folder / "labels.txt");
  std::vector<std::string> labels;
  for (std::string line; std::getline(file, line);) labels.push_back(line);
  return labels;
}

void check_same_words(const data::Vocabulary& vocabulary, const fs::path& checkpoint,
                      const std::string& weights) {
  const auto known = data::Vocabulary::load(checkpoint / "vocabulary.txt");
  bool same = known.size() == vocabulary.size();
  for (int64_t id = 0; same && id < known.size(); ++id) same = known.word(id) == vocabulary.word(id);
  if (!same)
    throw RecipeError("train.weights: the vocabulary of the run '" + weights + "' (" +
                      std::to_string(known.size()) + " words) differs from the vocabulary of these data (" +
                      std::to_string(vocabulary.size()) +
                      " words): use the data and the [task] settings of that run");
}

int64_t width_of_words(const fs::path& weights, const std::string& name) {
  const auto stored = nn::read_safetensors(weights);
  const auto* embedding = stored.find(name);
  TORCH_CHECK(embedding && embedding->dim() == 2, weights.string(), " has no embeddings");
  return embedding->size(1);
}

void load_with_words(torch::nn::Module& module, const fs::path& weights, const data::Vocabulary& vocabulary,
                     const std::vector<std::string>& labels) {
  try {
    nn::load_weights(module, weights);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string(error.what()) + "; do recipe.toml, vocabulary.txt (" +
                             std::to_string(vocabulary.size()) + " words) and labels.txt (" +
                             std::to_string(labels.size()) + " labels) beside it belong to it?");
  }
}

}  // namespace quatrain::tasks
