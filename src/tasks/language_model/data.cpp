#include "tasks/language_model/data.h"

#include <torch/types.h>

#include <algorithm>

#include "quatrain/data/tokenizer.h"
#include "support/numbers.h"
#include "support/telling.h"
#include "tasks/data_folder.h"
#include "tasks/language_model/task.h"
#include "tasks/sequence_keys.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {
namespace {

using data::Pieces;

// Lines as another reader gives them, which are told of; their words are counted.
class CountedLines : public data::LineReader {
 public:
  CountedLines(std::unique_ptr<data::LineReader> lines, std::string set, const DataRequest& request)
      : lines_(std::move(lines)), set_(std::move(set)), telling_(request.tell) {}
  bool next(std::string& line) override {
    if (!lines_->next(line)) return false;
    words_ += static_cast<int64_t>(data::split(line, data::Tokenizer::whitespace).size());
    telling_([this] { return set_ + " text: " + grouped(words_) + " words read"; });
    return true;
  }
  bool goes_on() const override { return lines_->goes_on(); }
  std::string place() const override { return lines_->place(); }
  int64_t words() const { return words_; }

 private:
  std::unique_ptr<data::LineReader> lines_;
  std::string set_;
  int64_t words_ = 0;
  Telling telling_;
};

}  // namespace

LanguageData::LanguageData(Recipe recipe, const data::TextCorpus& corpus, Pieces pieces,
                           const DataRequest& request)
    : Data(std::move(recipe)),
      pieces_(std::move(pieces)),
      only_scored_(!request.split.empty()),
      notes_(note_of_vocabulary(request)),
      sets_(std::make_shared<TextSets>()),
      checksums_(std::make_shared<Checksums>()) {
  const bool mark_ends = recipe_.own<LanguageOptions>().mark_ends;
  for (const char* split : {"train", "dev", "test"}) {
    if (!corpus.has(split) || (only_scored_ && request.split != split)) continue;
    CountedLines lines(corpus.open(split), split, request);
    int64_t ends = 0;
    const auto text =
        std::make_shared<const data::TokenStore>(data::encode_text(lines, pieces_, mark_ends, &ends));
    TORCH_CHECK(text->length(0) >= 2, "data: the ", split,
                " text must have 2 tokens or more, of which the second is predicted, but up to ",
                lines.place(), " there is one");
    if (const int64_t most = text->length(0) - 1;
        !only_scored_ && std::string_view(split) == "train" && recipe_.batch > most)
      recipe_.refuse("train.batch", "must be less than the " + grouped(most + 1) +
                                        " tokens of the train text, up to " + lines.place() + ", got " +
                                        std::to_string(recipe_.batch));
    sets_->emplace(split, TextSet{text, lines.words() + ends});
    add_checksums(*checksums_, corpus.files(split));
  }
  for (std::string& note : notes_of(corpus.bad(), "line")) notes_.push_back(std::move(note));
}

std::vector<Input> LanguageData::inputs(std::string_view split, const Recipe& recipe, int64_t size,
                                        int64_t count) const {
  const auto& text = sets_->find(split)->second.text;
  const data::WindowLoader loader(text, std::min(size, text->length(0) - 1),
                                  recipe.own<LanguageOptions>().windows.window);
  std::vector<Input> inputs;
  for (int64_t i = 0; i < std::min(count, loader.batches()); ++i) {
    const at::Tensor tokens = loader.batch(0, i).tokens;
    inputs.push_back({{tokens}, tokens.numel()});
  }
  return inputs;
}

std::unique_ptr<Model> LanguageData::make_model(const Recipe& recipe) const {
  return std::make_unique<TextPredictor>(recipe, pieces_);
}

std::unique_ptr<train::Task> LanguageData::make_task(std::shared_ptr<Model> model) const {
  return std::make_unique<LanguageTask>(std::dynamic_pointer_cast<TextPredictor>(std::move(model)), sets_,
                                        checksums_, only_scored_);
}

std::unique_ptr<Data> load_texts(Recipe recipe, const DataRequest& request) {
  auto& own = recipe.own<LanguageOptions>();
  settle_folder(own.source.reader, own.source.folder, data::text_readers(), request.folder, recipe.name);
  if (!own.file.empty()) own.file = find_data_file(own.file, own.source.folder);
  data::TextSource source = own.source;
  source.only = request.split;
  const auto corpus = data::open_text(source);
  const auto* model = dynamic_cast<const TextPredictor*>(request.model);
  Pieces pieces = [&] {
    if (model) return model->pieces;
    if (!request.vocabulary.empty()) {
      take_options<LanguageOptions>(recipe, request, [&](auto& of_run, const auto& known) {
        of_run.pieces = known.pieces;
        // A run that is resumed with another one is refused.
        if (!request.resumes || !recipe.weights.empty()) of_run.file = known.file;
      });
      return TextPredictor::load_pieces(request.vocabulary);
    }
    if (!own.file.empty()) return load_pieces(own.file, own.pieces);
    data::PieceOptions options = own.pieces;
    options.seed = recipe.train.seed;
    const auto reader = corpus->open("train");
    return Pieces::train([&](std::string& line) { return reader->next(line); }, options, request.tell);
  }();
  return std::make_unique<LanguageData>(std::move(recipe), *corpus, std::move(pieces), request);
}

}  // namespace quatrain::tasks
