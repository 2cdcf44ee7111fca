#pragma once

#include <memory>
#include <string>

#include "quatrain/data/text_pairs.h"
#include "quatrain/data/vocabulary.h"
#include "quatrain/nn/attention.h"
#include "quatrain/tasks/recipe.h"

namespace quatrain::tasks {

/// What compares the texts: models::PairAttention or models::PairEncoder.
enum class PairNetwork { attention, lstm };
const char* name(PairNetwork network);

/// The network that a recipe describes; its numbers of words and labels come with the data.
struct PairModelOptions {
  PairNetwork network = PairNetwork::attention;
  nn::AlgebraSpec algebra = "real";
  int64_t width = 200;
  int64_t layers = 2;
  int64_t word_width = 300;
  bool train_words = false;
  double dropout = 0;
  nn::Initialiser initialiser = nn::Initialiser::glorot;
  nn::AttentionKind attention = nn::AttentionKind::automatic;
  bool shared_comparison = true;
  bool bidirectional = false;
  bool compared = true;
  int64_t classifier_width = 300;
};

/// What a recipe of kind text_pairs sets.
struct TextPairTaskOptions : Options {
  TextPairTaskOptions();

  data::TextPairSource source;
  data::VocabularyOptions vocabulary;
  int64_t max_length = 128;
  std::string vectors;  ///< file of pretrained word vectors; empty: none
  int64_t negatives = 0;
  PairModelOptions model;

  std::unique_ptr<Options> clone() const override { return std::make_unique<TextPairTaskOptions>(*this); }
  void describe(train::Keys& keys) override;
  void check(const Recipe& recipe) const override;
  std::string selecting() const override { return ranked() ? "map" : "accuracy"; }
  std::string judging() const override { return selecting(); }
  bool ranked() const { return data::reads_ranked(source.reader); }
};

}  // namespace quatrain::tasks
