#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/augmentation.h"
#include "quatrain/data/filter_bank.h"
#include "quatrain/data/normalisation.h"
#include "quatrain/data/speech_corpus.h"
#include "quatrain/models/recurrent_network.h"
#include "quatrain/scores/error_rate.h"
#include "quatrain/tasks/recipe.h"

namespace quatrain::tasks {

/// What is learned of an utterance.
///   ctc        what is said, token by token, without knowing when (connectionist temporal classification)
///   frames     the class of each frame (QRNN's acoustic models), of which Viterbi's search makes phones
///   utterance  one label for all of it, by the mean of its frames' scores
enum class Objective { ctc, frames, utterance };
const char* name(Objective objective);

/// What the tokens of a text are.
enum class Units { words, characters, phones };
const char* name(Units units);

/// Whose frames have mean 0 and variance 1.
enum class NormaliseBy { training, speaker, utterance, none };
const char* name(NormaliseBy by);

/// What a recipe of kind speech sets.
struct QUATRAIN_API SpeechTaskOptions : Options {
  data::SpeechSource source;
  std::string dev_speakers, test_speakers;  ///< names with spaces between
  Objective objective = Objective::ctc;
  Units units = Units::words;

  data::FilterBankOptions bank{.rate = 0};  ///< rate 0: that of the first recording
  bool columns_read = false;                ///< the bands are the columns of the stored features
  bool classes_named = false;               ///< those of an alignment, by its phones.txt or by the model
  int64_t derivatives = 3;
  NormaliseBy normalise = NormaliseBy::training;
  data::NormalisationScale scale = data::NormalisationScale::quaternion;
  int64_t stack = 1;   ///< frames that the network reads as one
  std::string speeds;  ///< factors with spaces between
  data::SpecAugmentOptions masks{.band_masks = 0, .time_masks = 0};

  models::RecurrentNetworkOptions model{0, 64, 0};
  double batch_seconds = 0;
  int64_t samples = 3;  ///< utterances of the dev set shown at each evaluation

  struct Decode {
    int64_t beam = 1, best = 1;
    bool scores = false;             ///< answers of `predict` begin with their scores
    std::filesystem::path language;  ///< an ARPA file; empty: none
    double language_weight = 0.5, insertion = 0, threshold = 12;
    double prior_scale = 1, transition_scale = 1;
    scores::AlignmentRule alignment = scores::AlignmentRule::fewest_edits;
    bool times = false;
    double endpoint = 0;             ///< seconds without a token that end an utterance; 0: none
    double piece = 60, context = 4;  ///< seconds
  } decode;

  std::unique_ptr<Options> clone() const override { return std::make_unique<SpeechTaskOptions>(*this); }
  void describe(train::Keys& keys) override;
  void check(const Recipe& recipe) const override;
  std::string selecting() const override {
    return objective == Objective::frames ? "frame_error" : "error_rate";
  }
  std::string judging() const override {
    return objective != Objective::frames || is_timit() ? "error_rate" : "frame_error";
  }

  /// Files hold audio, and not the features that a run of stored ones reads.
  bool answers_lines() const override { return !source.stored_features; }

  /// e, e', e'' ..: what a band's number is made of.
  int64_t components() const { return derivatives + 1; }
  /// Of a row that the network reads.
  int64_t inputs() const { return components() * bank.bands * stack; }
  /// Seconds from one frame to the next. They begin at whole samples; of stored features nobody knows which.
  double frame_seconds() const {
    return source.stored_features
               ? bank.frame_shift / 1000
               : static_cast<double>(bank.shift_samples()) / static_cast<double>(bank.rate);
  }
  /// The same of the network's rows.
  double row_seconds() const { return frame_seconds() * static_cast<double>(stack); }
  bool is_timit() const { return source.reader == "timit"; }
  /// False where frames have classes of an alignment, whose tokens nobody knows.
  bool has_tokens() const { return objective != Objective::frames || is_timit() || classes_named; }
  /// True where a text is written by its characters, and words are what stands between gaps.
  bool of_characters() const { return objective == Objective::ctc && units == Units::characters; }
  /// False where phones or the classes of an alignment are all that is learned and scored.
  bool needs_words() const {
    return objective == Objective::utterance || (objective == Objective::ctc && units != Units::phones);
  }
  std::vector<double> speed_factors() const;
  /// The model with its sizes.
  models::RecurrentNetworkOptions network(int64_t classes) const;
};

}  // namespace quatrain::tasks
