#include "tasks/text_classification/kind.h"

#include "tasks/task_parts.h"
#include "tasks/text_classification/data.h"
#include "tasks/text_classification/model.h"
#include "tasks/text_classification/options.h"
#include "tasks/words.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;

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
                    {"f1", "F1", Format::share, true, "", true},
                    {"precision", "precision", Format::share, true, "", true},
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
    const bool pretrained = !recipe.own<TextOptions>().vectors.empty();
    const int64_t width = pretrained ? stored_vectors(weights, TextModel::kWords).size(1) : 0;
    auto model =
        std::make_unique<TextModel>(std::move(recipe), data::Vocabulary::load(folder / kVocabularyFile),
                                    read_labels(folder / kLabelsFile), width);
    load_with_words(model->module(), folder, model->vocabulary, model->labels);
    return model;
  }
};

}  // namespace

const Kind& text_classification() {
  static const TextKind kind;
  return kind;
}

}  // namespace quatrain::tasks
