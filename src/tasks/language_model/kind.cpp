#include "tasks/language_model/kind.h"

#include "quatrain/nn/weights.h"
#include "tasks/language_model/data.h"

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
    try {
      nn::load_weights(model->module(), folder / "model.safetensors");
    } catch (const std::runtime_error& error) {
      throw std::runtime_error(std::string(error.what()) + "; do recipe.toml and text.pieces (" +
                               std::to_string(model->pieces.size()) + " pieces) beside it belong to it?");
    }
    return model;
  }
};

}  // namespace

const Kind& language_model() {
  static const LanguageKind kind;
  return kind;
}

}  // namespace quatrain::tasks
