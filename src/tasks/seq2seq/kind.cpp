#include "tasks/seq2seq/kind.h"

#include "tasks/seq2seq/bleu_counts.h"
#include "tasks/seq2seq/data.h"
#include "tasks/seq2seq/model.h"
#include "tasks/seq2seq/options.h"
#include "tasks/seq2seq/shortlist.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {
namespace {

class Seq2SeqKind : public Kind {
 public:
  const About& about() const override {
    using Format = Figure::Format;
    static const About about{
        .name = "seq2seq",
        .summary =
            "A line becomes another, by a Transformer encoder-decoder: translation, style, arithmetic, "
            "your own pairs of lines.",
        .reads = "a source",
        .unit = "target tokens",
        .figures = {{"exact", "exact match", Format::share, true},
                    {.name = "bleu",
                     .title = "BLEU",
                     .format = Format::number,
                     .higher_is_better = true,
                     .margin = 0.5,
                     .of_counts = bleu_of},
                    {"chrf", "chrF", Format::number, true},
                    {"unchanged", "unchanged", Format::share, false},
                    {"perplexity", "perplexity", Format::number, false, "", true},
                    {"loss", "loss", Format::number, false, "", true}},
        .facts = {{"encoder_parameters", "of the layers", Format::count}},
        .answers = true,
        .exports = {{.name = "ctranslate2"}},
    };
    return about;
  }

  std::unique_ptr<Options> options() const override { return std::make_unique<Seq2SeqTaskOptions>(); }

  std::unique_ptr<Data> load_data(Recipe recipe, const DataRequest& request) const override {
    return load_pairs(std::move(recipe), request);
  }

  std::unique_ptr<Model> load_model(Recipe recipe, const std::filesystem::path& folder) const override {
    const auto& own = recipe.own<Seq2SeqTaskOptions>();
    std::shared_ptr<const models::Shortlist> shortlist;
    if (own.shortlist) shortlist = read_shortlist(folder.parent_path(), folder, own.joint);
    auto pieces = PairPieces::load(folder, own.joint);
    auto model = std::make_unique<Seq2SeqModel>(std::move(recipe), std::move(pieces));
    model->shortlist = std::move(shortlist);
    load_own_weights(model->module(), folder,
                     "recipe.toml and the vocabulary (" + std::to_string(model->pieces.source.size()) +
                         " and " + std::to_string(model->pieces.target.size()) + " pieces)");
    return model;
  }
};

}  // namespace

const Kind& seq2seq() {
  static const Seq2SeqKind kind;
  return kind;
}

}  // namespace quatrain::tasks
