#include "tasks/text_classification/kind.h"

#include <c10/util/Exception.h>

#include <fstream>

#include "quatrain/nn/safetensors.h"
#include "quatrain/nn/weights.h"
#include "support/text.h"
#include "tasks/text_classification/data.h"
#include "tasks/text_classification/model.h"
#include "tasks/text_classification/options.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> read_lines(const fs::path& path) {
  std::ifstream file = open_named(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// 0 where the recipe has no pretrained embeddings.
int64_t pretrained_width(const Recipe& recipe, const fs::path& weights) {
  if (recipe.own<TextOptions>().vectors.empty()) return 0;
  const auto stored = nn::read_safetensors(weights);
  const auto* embedding = stored.find("embedding.weight");
  TORCH_CHECK(embedding && embedding->dim() == 2, weights.string(), " has no embeddings");
  return embedding->size(1);
}

class TextKind : public Kind {
 public:
  const About& about() const override {
    using Format = Figure::Format;
    static const About about{
        .name = "text_classification",
        .summary = "A label for each text, by a Transformer encoder: sentiment, agreement, your own texts.",
        .reads = "a text",
        .unit = "words",
        .figures = {{"accuracy", "accuracy", Format::share, true, "majority"},
                    {"loss", "loss", Format::number, false, "", true}},
        .facts = {{"encoder_parameters", "of the encoder", Format::count}},
        .answers = true,
    };
    return about;
  }

  std::unique_ptr<Options> options() const override { return std::make_unique<TextOptions>(); }

  std::unique_ptr<Data> load_data(Recipe recipe, const DataRequest& request) const override {
    return load_text(std::move(recipe), request);
  }

  std::unique_ptr<Model> load_model(Recipe recipe, const fs::path& folder) const override {
    const fs::path weights = folder / "model.safetensors";
    const int64_t width = pretrained_width(recipe, weights);
    auto model =
        std::make_unique<TextModel>(std::move(recipe), data::Vocabulary::load(folder / "vocabulary.txt"),
                                    read_lines(folder / "labels.txt"), width);
    try {
      nn::load_weights(model->module(), weights);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(std::string(error.what()) + "; do recipe.toml, vocabulary.txt (" +
                               std::to_string(model->vocabulary.size()) + " words) and labels.txt (" +
                               std::to_string(model->labels.size()) + " labels) beside it belong to it?");
    }
    return model;
  }
};

}  // namespace

const Kind& text_classification() {
  static const TextKind kind;
  return kind;
}

}  // namespace quatrain::tasks
