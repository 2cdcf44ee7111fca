#include "tasks/text_pairs/kind.h"

#include "tasks/task_parts.h"
#include "tasks/text_pairs/data.h"
#include "tasks/text_pairs/model.h"
#include "tasks/text_pairs/options.h"
#include "tasks/words.h"

namespace quatrain::tasks {
namespace {

class TextPairKind : public Kind {
 public:
  const About& about() const override {
    using Format = Figure::Format;
    static const About about{
        .name = "text_pairs",
        .summary =
            "What a text is to another one, by attention between their words or by an LSTM: entailment, "
            "paraphrases, your own pairs; or answers are ranked by how well they fit a question.",
        .reads = "a text, a tab and a text",
        .unit = "words",
        .figures = {{"accuracy", "accuracy", Format::share, true, "majority"},
                    {.name = "map",
                     .title = "MAP",
                     .format = Format::share,
                     .higher_is_better = true,
                     .margin = 0.01,
                     .of_counts = share_of},
                    {.name = "mrr",
                     .title = "MRR",
                     .format = Format::share,
                     .higher_is_better = true,
                     .margin = 0.01,
                     .of_counts = share_of},
                    {.name = "precision_at_1",
                     .title = "P@1",
                     .format = Format::share,
                     .higher_is_better = true,
                     .margin = 0.01,
                     .of_counts = share_of},
                    {"f1", "F1", Format::share, true},
                    {"precision", "precision", Format::share, true, "", true},
                    {"loss", "loss", Format::number, false, "", true}},
        .facts = {{"encoder_parameters", "of the layers", Format::count}},
        .answers = true,
    };
    return about;
  }

  std::unique_ptr<Options> options() const override { return std::make_unique<TextPairTaskOptions>(); }

  std::unique_ptr<Data> load_data(Recipe recipe, const DataRequest& request) const override {
    return load_text_pair_data(std::move(recipe), request);
  }

  std::unique_ptr<Model> load_model(Recipe recipe, const std::filesystem::path& folder) const override {
    const auto weights = folder / "model.safetensors";
    const int64_t width = stored_vectors(weights, TextPairModel::kWords).size(1);
    auto labels = read_labels(folder / kLabelsFile);
    const bool ranked = recipe.own<TextPairTaskOptions>().ranked();
    if (ranked && labels.size() != 2)  // one score tells two labels apart, so the weights fit any number
      throw std::runtime_error((folder / kLabelsFile).string() +
                               " must have two labels where answers are ranked, got " +
                               std::to_string(labels.size()) + "; copy it again");
    auto model = std::make_unique<TextPairModel>(
        std::move(recipe), data::Vocabulary::load(folder / kVocabularyFile), std::move(labels), width);
    load_with_words(model->module(), folder, model->vocabulary, model->labels);
    return model;
  }
};

}  // namespace

const Kind& text_pairs() {
  static const TextPairKind kind;
  return kind;
}

}  // namespace quatrain::tasks
