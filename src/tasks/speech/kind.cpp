#include "tasks/speech/kind.h"

#include "tasks/speech/data.h"
#include "tasks/speech/model.h"
#include "tasks/speech/options.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {
namespace {

class SpeechKind : public Kind {
 public:
  const About& about() const override {
    using Format = Figure::Format;
    static const About about{
        .name = "speech",
        .summary =
            "What is said in recordings, by recurrent layers: words, characters or phones (`ctc`), the class "
            "of each frame as QRNN's acoustic models have it (`frames`), or one label (`utterance`). "
            "`error_rate` is the number of edits for each token that was said.",
        .reads = "the path of an audio file",
        .unit = "frames",
        .figures = {{.name = "error_rate",
                     .title = "error rate",
                     .format = Format::share,
                     .margin = 0.02,
                     .of_counts = share_of},
                    {.name = "frame_error",
                     .title = "wrong frames",
                     .format = Format::share,
                     .margin = 0.02,
                     .of_counts = share_of},
                    {"sentence_error_rate", "wrong utterances", Format::share, false, "", true},
                    {"loss", "loss", Format::number, false, "", true}},
        .facts = {{"encoder_parameters", "of the layers", Format::count}},
        .exports = {{.name = "kaldi", .scores_data = true}},
    };
    return about;
  }

  std::unique_ptr<Options> options() const override { return std::make_unique<SpeechTaskOptions>(); }

  std::unique_ptr<Data> load_data(Recipe recipe, const DataRequest& request) const override {
    return load_speech_data(std::move(recipe), request);
  }

  std::unique_ptr<Model> load_model(Recipe recipe, const std::filesystem::path& folder) const override {
    const auto& own = recipe.own<SpeechTaskOptions>();
    SpeechParts parts = SpeechParts::load(own, folder);
    const auto none = SpeechModel::empty_normalisation(own);  // that of the file comes with the weights
    auto model = std::make_unique<SpeechModel>(std::move(recipe), std::move(parts), none);
    load_own_weights(
        model->module(), folder,
        "recipe.toml and classes.txt (" + std::to_string(model->parts.classes.size()) + " classes)");
    return model;
  }
};

}  // namespace

const Kind& speech() {
  static const SpeechKind kind;
  return kind;
}

}  // namespace quatrain::tasks
