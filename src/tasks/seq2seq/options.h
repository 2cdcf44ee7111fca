#pragma once

#include <memory>
#include <string>

#include "quatrain/data/line_pair_loader.h"
#include "quatrain/data/line_pair_source.h"
#include "quatrain/data/pieces.h"
#include "quatrain/models/translate.h"
#include "quatrain/tasks/recipe.h"

namespace quatrain::tasks {

/// The figure of the dev set that selects the best checkpoint. `loss` alone does not search for targets
/// during training.
enum class SelectBy { loss, exact, bleu };
const char* name(SelectBy select);

/// What `predict` reads of a line.
///   source     all of it is a source
///   beginning  a source, a tab, and the beginning of its target
///   pair       a source, a tab, and its target, which is scored
enum class Reads { source, beginning, pair };
const char* name(Reads reads);

/// Whether the output layer has a row of real weights for each token.
bool has_real_output(const models::Seq2SeqOptions& model);

/// What a recipe of kind seq2seq sets.
struct Seq2SeqTaskOptions : Options {
  Seq2SeqTaskOptions();

  data::LinePairSource source;
  /// Of training pairs; sources to translate are cut at max_source.
  data::LinePairLimits limits{.max_source = 1024, .max_target = 1024};
  data::PieceOptions pieces;
  std::string file, target_file;       ///< with models of SentencePiece; empty: pieces are learned
  bool joint = true;                   ///< one vocabulary for both sides
  models::Seq2SeqOptions model{1, 1};  ///< its vocabularies come with the data
  int64_t batch_tokens = 0;
  double label_smoothing = 0.1;
  SelectBy select = SelectBy::loss;
  models::TranslationOptions translation;
  std::string banned;  ///< phrases that no target has, with " | " between
  Reads reads = Reads::source;
  bool alignments = false;       ///< answers of `predict` end with their alignments
  bool replace_unknown = false;  ///< by words of the source
  bool scores = false;           ///< answers of `predict` begin with their scores
  bool shortlist = false;        ///< a run's answers have only tokens of its shortlist
  int64_t samples = 3;           ///< sentences of the dev set shown at each evaluation

  std::unique_ptr<Options> clone() const override { return std::make_unique<Seq2SeqTaskOptions>(*this); }
  void describe(train::Keys& keys) override;
  void check(const Recipe& recipe) const override;
  std::string selecting() const override { return name(select); }
  std::string judging() const override { return select == SelectBy::exact ? "exact" : "bleu"; }
};

}  // namespace quatrain::tasks
