#include "tasks/language_model/kind.h"

#include "tasks/language_model/data.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {
namespace {

class LanguageKind : public Kind {
 public:
  const About& about() const override {
    using Format = Figure::Format;
    static const About about{
        .name = "language_model",
        .summary =
            "The next token of a text, by a Transformer that sees what came before: texts are scored and "
            "continued.",
        .reads = "the beginning of a text",
        .unit = "tokens",
        .figures = {{"perplexity", "perplexity"},
                    {"word_perplexity", "perplexity of words"},
                    {"loss", "loss", Format::number, false, "", true}},
        .facts = {{"encoder_parameters", "of the layers", Format::count}},
    };
    return about;
  }

  std::unique_ptr<Options> options() const override { return std::make_unique<LanguageOptions>(); }

  std::unique_ptr<Data> load_data(Recipe recipe, const DataRequest& request) const override {
    return load_texts(std::move(recipe), request);
  }

  std::unique_ptr<Model> load_model(Recipe recipe, const std::filesystem::path& folder) const override {
    auto model = std::make_unique<TextPredictor>(std::move(recipe), TextPredictor::load_pieces(folder));
    load_own_weights(model->module(), folder,
                     "recipe.toml and text.pieces (" + std::to_string(model->pieces.size()) + " pieces)");
    return model;
  }
};

}  // namespace

const Kind& language_model() {
  static const LanguageKind kind;
  return kind;
}

}  // namespace quatrain::tasks
