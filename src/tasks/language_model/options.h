#pragma once

#include <memory>

#include "quatrain/data/pieces.h"
#include "quatrain/data/text_source.h"
#include "quatrain/models/generate.h"
#include "quatrain/models/score_text.h"
#include "quatrain/tasks/recipe.h"

namespace quatrain::tasks {

/// What a recipe of kind language_model sets.
struct LanguageOptions : Options {
  LanguageOptions();

  data::TextSource source;
  bool mark_ends = true;  ///< the end mark stands behind each line
  data::PieceOptions pieces;
  std::string file;                       ///< with a model of SentencePiece; empty: pieces are learned
  models::LanguageModelOptions model{1};  ///< its vocabulary comes with the data
  models::WindowOptions windows;          ///< `window` also of the batches, and of what is seen in generation
  models::GenerationOptions generation;   ///< without its tokens, which come with the data
  bool unknown = true;                    ///< the unknown token may be generated
  uint64_t seed = 0;                      ///< of generated text
  bool score = false;                     ///< `predict` scores lines instead of continuing them

  std::unique_ptr<Options> clone() const override { return std::make_unique<LanguageOptions>(*this); }
  void describe(train::Keys& keys) override;
  void check(const Recipe& recipe) const override;
  std::string selecting() const override { return "loss"; }
};

}  // namespace quatrain::tasks
