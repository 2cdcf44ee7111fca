#include "tasks/text_classification/options.h"

#include "tasks/data_folder.h"
#include "tasks/transformer_keys.h"

namespace quatrain::tasks {
namespace {

constexpr const char* kAutomatic = "automatic";

std::vector<std::string> tokenizer_names() {
  std::vector<std::string> all{kAutomatic};
  for (const auto tokenizer : data::kTokenizers) all.push_back(data::name(tokenizer));
  return all;
}

}  // namespace

TextOptions::TextOptions() {
  vocabulary.max_size = 50000;
  task.max_length = 256;
}

// One shape for all entries reads better than what fits on a line.
// clang-format off
void TextOptions::describe(train::Keys& keys) {
  constexpr double kLargestSize = 1 << 20;
  constexpr double kLargestCount = 1e12;
  using train::Value;

  keys.table("task", "What is learned, from which data.");
  keys.text("data", source.reader,
            "The reader of the texts' format. `agreement` generates its sentences; where a folder is given, it "
            "reads real sentences there instead, as `sva` does.", names_of(data::readers()));
  keys.path("folder", source.folder,
            "Folder of the data. `--data` sets it; where both are empty, the environment's `QUATRAIN_DATA` "
            "counts.").may_change();
  keys.add("split", [this] { return Value(split); },
           [this](const Value& value) {
             split = std::get<std::string>(value);
             source.shares.reset();
             if (!split.empty()) source.shares = data::Shares::parse(split);
           },
           "About what shares of the texts are train, dev and test, such as `80/10/10`, where `folder` is one file of `tsv` "
           "data. A hash of a text says in which set it is, and it stays there when the file grows. `--split` sets it.");
  keys.add("tokenizer",
           [this] { return Value(std::string(source.tokenizer ? data::name(*source.tokenizer) : kAutomatic)); },
           [this](const Value& value) {
             source.tokenizer.reset();
             if (const auto& name = std::get<std::string>(value); name != kAutomatic)
               source.tokenizer = data::parse_tokenizer(name);
           },
           "How a text becomes words: `automatic` is the reader's own, `whitespace` takes the words between "
           "spaces, `lowercase` lowers them, `simple` also cuts punctuation off.").values = tokenizer_names();
  keys.number("min_count", vocabulary.min_count, 1, kLargestCount,
              "Words seen less often in the training set become `<unk>`.");
  keys.number("max_vocabulary", vocabulary.max_size, 3, kLargestSize * 16,
              "Most words a model knows, the commonest first.");
  keys.number("max_length", task.max_length, 0, kLargestSize, "Longer texts are cut off after so many words; 0: no limit.");
  keys.text("vectors", vectors,
            "File of pretrained word vectors (`NAME.bf16` with `NAME.vocab` beside it, or GloVe's text "
            "format); empty: none. A relative path that is not here is looked for in the data folder.").may_change();
  keys.flag("freeze_vectors", model.freeze_pretrained(), "Pretrained vectors stay as they are.").only("a file in task.vectors", [this] { return !vectors.empty(); });

  keys.table("agreement", "Sizes of the generated sentences, where `task.data` is `agreement`.");
  keys.number("train", source.agreement.train, 10, 1e8, "Generated sentences to train on.");
  keys.number("dev", source.agreement.dev, 10, 1e8, "Generated sentences of the dev set, which selects the best checkpoint.");
  keys.number("test", source.agreement.test, 10, 1e8, "Generated sentences of the test set, which is scored once, at the end.");
  keys.number("seed", source.agreement.seed, 0, kLargestCount, "Seed of the sentences.");

  keys.table("model", "The Transformer. Models over other algebras are twins of the same recipe.");
  describe_transformer(keys, settings_of(model));
  keys.flag("embedding_scale", model.embedding_scale(), "Embeddings are multiplied by the square root of the width.");
  keys.number("layers", model.layers(), 1, 1000, "Encoder layers.");

  keys.table("train", "How it is trained.");
  keys.number("label_smoothing", task.label_smoothing, 0, 0.99, "Share of the target that is spread over all labels.");
}
// clang-format on

void TextOptions::check(const Recipe& recipe) const {
  check_transformer(recipe, model);
}

}  // namespace quatrain::tasks
