#include "tasks/language_model/options.h"

#include "tasks/data_folder.h"
#include "tasks/sequence_keys.h"
#include "tasks/transformer_keys.h"

namespace quatrain::tasks {
LanguageOptions::LanguageOptions() {
  model.heads(4).feed_forward(512).layers(2);
  pieces.kind = data::PieceKind::words;
}

// One shape for all entries reads better than what fits on a line.
// clang-format off
void LanguageOptions::describe(train::Keys& keys) {
  constexpr double kLargestSize = 1 << 20;
  constexpr double kLargestCount = 1e12;

  keys.table("task", "What is learned, from which data.");
  keys.text("data", source.reader, "The reader of the text's format.", names_of(data::text_readers()));
  keys.path("folder", source.folder,
            "Folder of the data. `--data` sets it; where both are empty, the environment's `QUATRAIN_DATA` "
            "counts.").may_change();
  keys.flag("skip_bad", source.skip_bad, "Bad lines (text that is not UTF-8, no space in half a MiB) are counted and left out; else the first is an error.").may_change_in_answers();
  keys.flag("mark_ends", mark_ends,
            "An end mark stands behind each line that is not empty, as a token of the text. A prompt then begins a line, and its continuation ends with the line.");
  keys.number("window", windows.window, 1, kLargestSize,
              "Tokens that are seen at once, in training, in scoring and in generation. A batch holds a window of each of the `train.batch` columns that the text is cut into.");

  keys.table("vocabulary", "How lines become tokens. It is learned from the training set, or that of a file, and stored with a run.");
  describe_pieces(keys, pieces, file);

  keys.table("model", "The Transformer. Models over other algebras are twins of the same recipe.");
  describe_transformer(keys, settings_of(model));
  keys.number("layers", model.layers(), 1, 1000, "Layers, each of which sees what came before.");
  describe_sequence(keys, model.sequence_settings);

  keys.table("evaluate", "How a set is scored.");
  keys.number("stride", windows.stride, 0, kLargestSize,
              "How far each window lies behind the one before. Every token is scored once, with `window - stride` tokens of context or more; 0: windows do not overlap.").may_change_in_answers();

  keys.table("generate", "How `predict` continues a line.");
  const auto writes = [this] { return !score; };
  const auto draws = [this] { return !score && generation.sampling.temperature > 0; };
  constexpr const char *kWrites = "generate.score = false", *kDraws = "generate.score = false and generate.temperature above 0";
  keys.number("tokens", generation.tokens, 1, kLargestSize, "Most tokens of a continuation.").only_predicts().only(kWrites, writes);
  keys.number("temperature", generation.sampling.temperature, 0, 1e6, "What scores are divided by before a token is drawn; 0: the best token, always.").only_predicts().only(kWrites, writes);
  keys.number("top_k", generation.sampling.top_k, 0, kLargestCount, "A token is drawn from so many best ones; 0: from all.").only_predicts().only(kDraws, draws);
  keys.number("top_p", generation.sampling.top_p, 1e-9, 1, "A token is drawn from the fewest best ones whose probabilities together are at least this; 1: from all.").only_predicts().only(kDraws, draws);
  keys.flag("unknown", unknown, "`<unk>` may be drawn.").only_predicts().only(kWrites, writes);
  keys.number("seed", seed, 0, kLargestCount, "Seed of the draws. The same line with the same seed is continued alike, whatever the other lines.").only_predicts().only(kDraws, draws);
  keys.flag("score", score, "`predict` writes a line's log-probability and its perplexity, with a tab between, instead of a continuation.").only_predicts();
}
// clang-format on

void LanguageOptions::check(const Recipe& recipe) const {
  check_transformer(recipe, model);
  if (windows.stride > windows.window)
    recipe.refuse("evaluate.stride", "must be at most task.window = " + std::to_string(windows.window) +
                                         ", got " + std::to_string(windows.stride));
  if (model.positions() == models::Positions::learned && model.max_length() < windows.window)
    recipe.refuse("model.max_positions", "must be at least task.window = " + std::to_string(windows.window) +
                                             ", got " + std::to_string(model.max_length()));
}

}  // namespace quatrain::tasks
