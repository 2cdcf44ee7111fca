#include "tasks/seq2seq/options.h"

#include "models/share_out.h"
#include "support/enum_names.h"
#include "support/numbers.h"
#include "tasks/data_folder.h"
#include "tasks/recipe_keys.h"
#include "tasks/sequence_keys.h"
#include "tasks/transformer_keys.h"

namespace quatrain::tasks {
namespace {

constexpr EnumNames<SelectBy, 3> kSelectBy{
    {{SelectBy::loss, "loss"}, {SelectBy::exact, "exact"}, {SelectBy::bleu, "bleu"}}};

constexpr EnumNames<Reads, 3> kReads{
    {{Reads::source, "source"}, {Reads::beginning, "beginning"}, {Reads::pair, "pair"}}};

constexpr const char* kAutomatic = "automatic";

// Those of an unknown reader are left to the error that names the known ones.
bool reads_files(const std::string& reader) {
  for (const data::Reader& one : data::line_pair_readers())
    if (one.name == reader) return one.takes_folder;
  return true;
}

std::vector<std::string> form_names() {
  std::vector<std::string> all{kAutomatic};
  for (const auto form : data::kTextForms) all.push_back(data::name(form));
  return all;
}

}  // namespace

const char* name(SelectBy select) {
  return name_of(kSelectBy, select);
}

const char* name(Reads reads) {
  return name_of(kReads, reads);
}

bool has_real_output(const models::Seq2SeqOptions& model) {
  using models::OutputLayer;
  const bool real = model.algebra().n == 1;
  return real || model.output() == OutputLayer::real ||
         (model.output() == OutputLayer::tied && !model.embedding_in_algebra());
}

Seq2SeqTaskOptions::Seq2SeqTaskOptions() {
  model.width(128).heads(4).feed_forward(512).encoder_layers(2).decoder_layers(2);
  model.share_embeddings(true);
  pieces.kind = data::PieceKind::characters;
  source.math.lowest = 0, source.math.highest = 10;
}

// One shape for all entries reads better than what fits on a line.
// clang-format off
void Seq2SeqTaskOptions::describe(train::Keys& keys) {
  constexpr double kLargestSize = 1 << 20;
  constexpr double kLargestCount = 1e12;
  using data::MathSplit;
  using models::LengthPenalty, models::Projection;
  using train::Value;
  constexpr const char *kFiles = "a task.data that reads files", *kMath = "task.data = math", *kReverse = "task.data = reverse";
  const auto of_files = [this] { return reads_files(source.reader); };
  const auto is_math = [this] { return source.reader == "math"; };
  const auto is_reverse = [this] { return source.reader == "reverse"; };

  keys.table("task", "What is learned, from which data.");
  keys.text("data", source.reader, "The reader of the pairs' format. `math` and `reverse` generate theirs.", names_of(data::line_pair_readers()));
  keys.path("folder", source.folder,
            "Folder of the data. `--data` sets it; where both are empty, the environment's `QUATRAIN_DATA` "
            "counts.").may_change().only(kFiles, of_files);
  keys.text("source", source.source, "Ending of the files with sources (`de`); empty: the reader's own.").only(kFiles, of_files);
  keys.text("target", source.target, "Ending of the files with targets (`en`); empty: the reader's own.").only(kFiles, of_files);
  keys.add("text",
           [this] { return Value(std::string(source.text ? data::name(*source.text) : kAutomatic)); },
           [this](const Value& value) {
             source.text.reset();
             if (const auto& name = std::get<std::string>(value); name != kAutomatic)
               source.text = data::parse_text_form(name);
           },
           "What the lines are: `raw` text, whose BLEU is counted by the rules `13a`; `tokenised` text, whose words "
           "are scored as they stand; `bpe` pieces, which are joined at `@@ ` in references as in answers, and whose words are then scored so. `automatic` is the reader's own.").values = form_names();
  keys.flag("skip_bad", source.skip_bad, "Bad pairs (an empty side, text that is not UTF-8) are counted and left out; else the first is an error.").may_change_in_answers().only(kFiles, of_files);
  keys.number("max_source", limits.max_source, 0, kLargestSize,
              "Training pairs whose source has more tokens are left out, and sources to translate or to score are cut off there; 0: no limit.");
  keys.number("max_target", limits.max_target, 0, kLargestSize, "Training pairs whose target has more tokens are left out; 0: no limit.");
  keys.number("max_ratio", limits.max_ratio, 0, 1e6, "Training pairs are left out where one side has more than this many times the tokens of the other; 0: no limit.");

  keys.table("math", "Generated assignments and questions (QNLP's mathematical language understanding), where `task.data` is `math`.");
  keys.number("lowest", source.math.lowest, -1e9, 1e9, "Smallest value of a variable.").only(kMath, is_math);
  keys.number("highest", source.math.highest, -1e9, 1e9, "Values are smaller than this.").only(kMath, is_math);
  keys.choice("split", source.math.split, {MathSplit::strict, MathSplit::paper},
              "What keeps the test set apart. `paper`: no line is in two sets. `strict`: no question (left value, operator, right value) is, so that the other variable's name is no new question.").only(kMath, is_math);
  keys.number("train", source.math.train, 1, 1e9, "Generated lines to train on.").only(kMath, is_math);
  keys.number("dev", source.math.dev, 1, 1e8, "Generated lines of the dev set, which selects the best checkpoint.").only(kMath, is_math);
  keys.number("test", source.math.test, 1, 1e8, "Generated lines of the test set, which is scored once, at the end.").only(kMath, is_math);
  keys.number("seed", source.math.seed, 0, kLargestCount, "Seed of the lines.").only(kMath, is_math);

  keys.table("reverse", "Generated words to be put in reverse order, where `task.data` is `reverse`.");
  keys.number("shortest", source.reverse.shortest, 1, 10000, "Fewest words of a line.").only(kReverse, is_reverse);
  keys.number("longest", source.reverse.longest, 1, 10000, "Most words of a line.").only(kReverse, is_reverse);
  keys.number("symbols", source.reverse.symbols, 2, 1e6, "Different words.").only(kReverse, is_reverse);
  keys.number("train", source.reverse.train, 1, 1e9, "Generated lines to train on.").only(kReverse, is_reverse);
  keys.number("dev", source.reverse.dev, 1, 1e8, "Generated lines of the dev set.").only(kReverse, is_reverse);
  keys.number("test", source.reverse.test, 1, 1e8, "Generated lines of the test set.").only(kReverse, is_reverse);
  keys.number("seed", source.reverse.seed, 0, kLargestCount, "Seed of the lines.").only(kReverse, is_reverse);

  keys.table("vocabulary", "How lines become tokens. It is learned from the training set, or that of a file, and stored with a run.");
  describe_pieces(keys, pieces, file);
  keys.text("target_file", target_file, "The same for targets, where `joint` is false and `file` is for sources.").only("vocabulary.joint = false", [this] { return !joint; });
  keys.flag("joint", joint, "One vocabulary for sources and targets, learned from both.");

  keys.table("model", "The Transformer. Models over other algebras are twins of the same recipe.");
  describe_transformer(keys, settings_of(model));
  keys.number("encoder_layers", model.encoder_layers(), 1, 1000, "Layers of the encoder.");
  keys.number("decoder_layers", model.decoder_layers(), 1, 1000, "Layers of the decoder.");
  keys.flag("share_embeddings", model.share_embeddings(), "One embedding for sources and targets; `vocabulary.joint` must be true.");
  describe_sequence(keys, model.sequence_settings);

  keys.table("train", "How it is trained.");
  keys.number("batch_tokens", batch_tokens, 0, kLargestSize * 1024,
              "Most tokens of the longer side of a batch, padding included; 0: `batch` pairs. With both, the smaller batch.");
  keys.number("label_smoothing", label_smoothing, 0, 0.99, "Share of the target that is spread over the vocabulary.");
  keys.choice("select", select, {SelectBy::loss, SelectBy::exact, SelectBy::bleu},
              "The dev set's figure that selects the best checkpoint. With `loss`, training searches no targets before the end.");
  keys.number("samples", samples, 0, 1000, "Sentences of the dev set that `train` shows with their answers at each evaluation.").may_change();

  keys.table("decode", "How targets are searched for.");
  keys.choice("reads", reads, {Reads::source, Reads::beginning, Reads::pair},
              "What `predict` reads of a line: a `source`; a source, a tab and the `beginning` of its target, with which every answer begins; "
              "a `pair` of a source, a tab and its target: the answer is the target's log-probability, a tab, and how many tokens that is the sum of, the end mark among them.").only_predicts();
  keys.number("beam", translation.search.beam, 1, 10000, "Hypotheses kept at each step; 1: greedy.").may_change_in_answers();
  keys.choice("length_penalty", translation.search.penalty, {LengthPenalty::power, LengthPenalty::wu},
              "What log-probabilities are divided by: `power`: L^alpha; `wu`: ((5 + L) / 6)^alpha; L counts the end mark.").may_change_in_answers();
  keys.number("alpha", translation.search.alpha, -10, 10, "Of the length penalty; 0: none.").may_change_in_answers();
  keys.number("patience", translation.search.patience, 0, 10000,
              "0: the search for a target ends where no hypothesis that lives can win any more; of 1 or more: at the latest when beam times so many are finished. A beam of 1 ends at its first end mark.").may_change_in_answers();
  keys.number("shortest", translation.search.shortest, 0, kLargestSize, "Fewest tokens of a target.").may_change_in_answers();
  keys.number("no_repeat", translation.search.no_repeat, 0, kLargestSize,
              "A sequence of this many tokens comes at most once in a target; 0: no limit.").may_change_in_answers();
  keys.text("banned", banned,
            "Phrases that no target has, with ` | ` between, as the target's pieces cut them; `<unk>`: the unknown token.").may_change_in_answers();
  keys.number("longest_factor", translation.longest_factor, 0, 1000, "A target has at most this many times the tokens of its source, and `longest_offset` more.").may_change_in_answers();
  keys.number("longest_offset", translation.longest_offset, 0, kLargestSize, "Tokens that a target may have beyond `longest_factor` times those of its source.").may_change_in_answers();
  keys.number("longest", translation.longest, 1, kLargestSize, "Most tokens of a target.").may_change_in_answers();
  keys.number("best", translation.search.best, 1, 10000, "How many hypotheses `predict` writes for a line, with tabs between.").only_predicts().only("decode.reads = source or beginning", [this] { return reads != Reads::pair; });
  keys.flag("scores", scores, "`predict` writes the score before each hypothesis, with a tab between.").only_predicts().only("decode.reads = source or beginning", [this] { return reads != Reads::pair; });
  keys.flag("alignments", alignments,
            "`predict` writes after each hypothesis, with a tab between, which token of the source each token comes from: pairs `source-target` of places, from 0.").only_predicts();
  keys.flag("replace_unknown", replace_unknown,
            "An unknown word of an answer becomes the source's word at its aligned place. It needs `vocabulary.pieces = \"words\"` or `\"basic_english\"`.").may_change_in_answers();
  keys.flag("exact", translation.exact,
            "On a CPU an answer of `predict` is a function of its line alone, bit for bit, whatever the other lines and however many the threads.").may_change_in_answers();
  keys.choice("projection", translation.projection, {Projection::float32, Projection::bfloat16},
              "The type in which the output layer scores tokens while targets are searched for. `bfloat16` is faster, above all with a large vocabulary and on machines with AMX; its scores have two to three digits.").may_change_in_answers();
  keys.flag("shortlist", shortlist,
            "Answers have only tokens that RUN/shortlist lists for their source, which `quatrain shortlist RUN` makes; log-probabilities are over these. "
            "It needs a real output layer. Training does not look at it.").may_change();
  keys.number("batch", translation.batch, 1, 100000, "Most lines that are searched for at once.").may_change();
}
// clang-format on

void Seq2SeqTaskOptions::check(const Recipe& recipe) const {
  check_transformer(recipe, model);
  if (model.positions() == models::Positions::learned && translation.search.shortest >= model.max_length())
    recipe.refuse("decode.shortest",
                  "must be below model.max_positions = " + std::to_string(model.max_length()) + ", got " +
                      std::to_string(translation.search.shortest));
  if (model.share_embeddings() && !joint)
    recipe.refuse("model.share_embeddings", "= true needs vocabulary.joint = true (set one of the two)");
  if (joint && !target_file.empty())
    recipe.refuse("vocabulary.target_file",
                  "must be empty with vocabulary.joint = true, where file is for both");
  if (!joint && file.empty() != target_file.empty())
    recipe.refuse("vocabulary.target_file",
                  "and vocabulary.file must both name a model, or neither, with vocabulary.joint = false");
  if (translation.search.patience > 0 && translation.search.patience < 1)
    recipe.refuse("decode.patience",
                  "must be 0 or at least 1, got " + short_number(translation.search.patience));
  if (translation.search.best > translation.search.beam)
    recipe.refuse("decode.best", "must be at most decode.beam = " + std::to_string(translation.search.beam) +
                                     ", got " + std::to_string(translation.search.best));
  if (translation.search.shortest > translation.longest)
    recipe.refuse("decode.shortest",
                  "must be at most decode.longest = " + std::to_string(translation.longest) + ", got " +
                      std::to_string(translation.search.shortest));
  if (translation.exact && model.positions() == models::Positions::learned &&
      model.max_length() < models::kExactRows)
    recipe.refuse("model.max_positions", "must be at least " + std::to_string(models::kExactRows) +
                                             " with decode.exact = true, got " +
                                             std::to_string(model.max_length()) +
                                             ": texts are filled up to that length for it");
  if (shortlist && !has_real_output(model))
    recipe.refuse("decode.shortlist",
                  "= true needs an output layer with a row for each token: model.output = real, or tied with "
                  "model.embedding_in_algebra = false");
  if (replace_unknown && !data::is_of_words(pieces.kind))
    recipe.refuse(
        "decode.replace_unknown",
        std::string("= true needs vocabulary.pieces = words or basic_english, whose tokens are words "
                    "to be copied, got ") +
            data::name(pieces.kind));
  if (select == SelectBy::bleu && source.reader == "math")
    recipe.refuse(
        "train.select",
        "= bleu needs answers of several words, which task.data = math has not (take exact or loss)");
  if (limits.max_ratio > 0 && limits.max_ratio < 1)
    recipe.refuse("task.max_ratio",
                  "must be at least 1, or 0 for no limit, got " + short_number(limits.max_ratio));
  if (source.math.lowest >= source.math.highest)
    recipe.refuse("math.highest", "must be above math.lowest = " + std::to_string(source.math.lowest) +
                                      ", got " + std::to_string(source.math.highest));
  if (source.reverse.shortest > source.reverse.longest)
    recipe.refuse("reverse.longest",
                  "must be at least reverse.shortest = " + std::to_string(source.reverse.shortest) +
                      ", got " + std::to_string(source.reverse.longest));
}

}  // namespace quatrain::tasks
