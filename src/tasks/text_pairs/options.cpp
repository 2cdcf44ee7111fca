#include "tasks/text_pairs/options.h"

#include "support/enum_names.h"
#include "tasks/data_folder.h"
#include "tasks/recipe_keys.h"
#include "tasks/transformer_keys.h"

namespace quatrain::tasks {
namespace {

constexpr const char* kReadersOwn = "automatic";
constexpr EnumNames<PairNetwork, 2> kNetworks{
    {{PairNetwork::attention, "attention"}, {PairNetwork::lstm, "lstm"}}};

std::vector<std::string> tokenizers_of_pairs() {
  std::vector<std::string> all{kReadersOwn};
  for (const auto tokenizer : data::kTokenizers) all.push_back(data::name(tokenizer));
  return all;
}

}  // namespace

const char* name(PairNetwork network) {
  return name_of(kNetworks, network);
}

TextPairTaskOptions::TextPairTaskOptions() {
  vocabulary.max_size = 50000;
}

// One shape for all entries reads better than what fits on a line.
// clang-format off
void TextPairTaskOptions::describe(train::Keys& keys) {
  constexpr double kLargestSize = 1 << 20;
  constexpr double kLargestCount = 1e12;
  using train::Value;
  using I = nn::Initialiser;
  using nn::AttentionKind;

  keys.table("task", "What is learned, from which data.");
  keys.text("data", source.reader, "The reader of the pairs' format. `entailment` generates its sentences. "
            "`wikiqa` and `trecqa` rank the answers to questions.", names_of(data::text_pair_readers()));
  keys.path("folder", source.folder,
            "Folder of the data. `--data` sets it; where both are empty, the environment's `QUATRAIN_DATA` "
            "counts.").may_change();
  keys.flag("skip_bad", source.skip_bad, "Bad pairs (an empty side, an unknown label, text that is not UTF-8) are counted and left out; else the first is an error.").may_change_in_answers().only("a task.data that reads files", [this] { return source.reader != "entailment"; });
  keys.add("tokenizer",
           [this] { return Value(std::string(source.tokenizer ? data::name(*source.tokenizer) : kReadersOwn)); },
           [this](const Value& value) {
             source.tokenizer.reset();
             if (const auto& name = std::get<std::string>(value); name != kReadersOwn)
               source.tokenizer = data::parse_tokenizer(name);
           },
           "How a text becomes words: `automatic` is the reader's own, `whitespace` takes the words between "
           "spaces, `lowercase` lowers them, `simple` also cuts punctuation off.").values = tokenizers_of_pairs();
  keys.number("min_count", vocabulary.min_count, 1, kLargestCount, "Words seen less often become `<unk>`: in the training set, or in all sets where `model.train_words` is off.");
  keys.number("max_vocabulary", vocabulary.max_size, 3, kLargestSize * 16, "Most words a model knows, the commonest first.");
  keys.number("max_length", max_length, 0, kLargestSize, "Longer texts are cut off after so many words; 0: no limit.");
  keys.text("vectors", vectors,
            "File of pretrained word vectors (`NAME.bf16` with `NAME.vocab` beside it, or GloVe's text "
            "format); empty: they are drawn. A relative path that is not here is looked for in the data folder.").may_change();
  keys.number("negatives", negatives, 0, kLargestCount,
              "Where answers are ranked: for each right answer so many wrong ones to its question are trained with, others in each epoch; 0: all.");

  keys.table("entailment", "Sizes of the generated pairs, where `task.data` is `entailment`.");
  keys.number("train", source.entailment.train, 10, 1e8, "Generated pairs to train on.");
  keys.number("dev", source.entailment.dev, 10, 1e8, "Generated pairs of the dev set, which selects the best checkpoint.");
  keys.number("test", source.entailment.test, 10, 1e8, "Generated pairs of the test set, which is scored once, at the end.");
  keys.number("order_share", source.entailment.order_share, 0, 1, "Share of pairs whose label only the order of words tells.");
  keys.number("seed", source.entailment.seed, 0, kLargestCount, "Seed of the pairs.");

  constexpr const char* kLstm = "model.network = lstm";
  const auto of_lstm = [this] { return model.network == PairNetwork::lstm; };
  keys.table("model", "The network. Models over other algebras are twins of the same recipe.");
  keys.choice("network", model.network, {PairNetwork::attention, PairNetwork::lstm},
              "`attention`: words of either text are aligned with those of the other and compared (QNLP's Q-Att; DeAtt where the algebra is real). "
              "`lstm`: one LSTM encodes either text (PHM-LSTM).");
  keys.algebra("algebra", model.algebra, "What the layers multiply with: `real`, `quaternion`, `phm(5)` ..; projection and classifier are real.");
  keys.number("width", model.width, 1, 1 << 16, "Width of the attention's words and layers, or of the LSTM's state; n must divide it.");
  keys.number("layers", model.layers, 1, 64, "Layers of each feed-forward network of `attention`, or of the LSTM.");
  keys.number("word_width", model.word_width, 1, kLargestSize, "Width of words' vectors where `task.vectors` is empty; n must divide it where they go into an LSTM.");
  keys.flag("train_words", model.train_words, "The vectors of words are trained; else they stay what they were.");
  keys.number("dropout", model.dropout, 0, 0.99, "Share of values dropped: of `attention`'s words and after each activation, or between the LSTM's layers and in its classifier.");
  keys.choice("initialiser", model.initialiser, {I::glorot, I::he, I::lecun, I::polar, I::polar_he, I::polar_paper, I::polar_paper_he}, "How weights are drawn.");
  keys.choice("attention", model.attention, {AttentionKind::automatic, AttentionKind::componentwise, AttentionKind::real},
              "Of `attention`: softmax over n component-wise score maps or over one real map; `automatic` is component-wise where the algebra is fixed.").only("model.network = attention and an algebra of n > 1", [this] { return model.network == PairNetwork::attention && model.algebra.n > 1; });
  keys.flag("shared_comparison", model.shared_comparison, "Of `attention`: one network compares the words of both texts; else each text has its own.").only("model.network = attention", [this] { return model.network == PairNetwork::attention; });
  keys.flag("bidirectional", model.bidirectional, "Of `lstm`: a second direction, from the last word to the first.").only(kLstm, of_lstm);
  keys.flag("compared", model.compared, "Of `lstm`: the classifier sees both texts' features, their difference and product; else the features alone.").only(kLstm, of_lstm);
  keys.number("classifier_width", model.classifier_width, 1, kLargestSize, "Of `lstm`: width of the real classifier's two layers.").only(kLstm, of_lstm);
}
// clang-format on

void TextPairTaskOptions::check(const Recipe& recipe) const {
  const int64_t n = model.algebra.n;
  const auto refuse_size = [&](const char* key, int64_t size) {
    recipe.refuse(key, "must be divisible by n = " + std::to_string(n) + " (" + model.algebra.text() +
                           "), got " + std::to_string(size) + " (nearest: " + nearest_multiples(size, n) +
                           ")");
  };
  if (model.width % n != 0) refuse_size("model.width", model.width);
  if (model.network == PairNetwork::lstm && vectors.empty() && model.word_width % n != 0)
    refuse_size("model.word_width", model.word_width);
  if (model.network == PairNetwork::attention) check_attention(recipe, model.attention, model.algebra);
  const auto refuse_other_network = [&](const char* key, const char* network) {
    recipe.refuse(key, "is for model.network = '" + std::string(network) + "', got model.network = '" +
                           name(model.network) + "'");
  };
  if (model.network == PairNetwork::lstm && model.attention != nn::AttentionKind::automatic)
    refuse_other_network("model.attention", name(PairNetwork::attention));
  if (model.network == PairNetwork::attention && model.bidirectional)
    refuse_other_network("model.bidirectional", name(PairNetwork::lstm));
  if (model.network == PairNetwork::attention && !model.compared)
    refuse_other_network("model.compared", name(PairNetwork::lstm));
  if (negatives > 0 && !ranked())
    recipe.refuse("task.negatives", "is for data whose answers are ranked (wikiqa, trecqa), got " +
                                        std::to_string(negatives) + " with task.data = '" + source.reader +
                                        "'");
}

}  // namespace quatrain::tasks
