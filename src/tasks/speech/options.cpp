#include "tasks/speech/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "quatrain/data/tokenizer.h"
#include "support/enum_names.h"
#include "support/numbers.h"
#include "support/text.h"
#include "tasks/data_folder.h"
#include "tasks/recipe_keys.h"
#include "tasks/recipe_toml.h"
#include "tasks/recurrent_keys.h"

namespace quatrain::tasks {
namespace {

constexpr EnumNames<Objective, 3> kObjectives{
    {{Objective::ctc, "ctc"}, {Objective::frames, "frames"}, {Objective::utterance, "utterance"}}};
constexpr EnumNames<Units, 3> kUnits{
    {{Units::words, "words"}, {Units::characters, "characters"}, {Units::phones, "phones"}}};
constexpr EnumNames<NormaliseBy, 4> kNormaliseBy{{{NormaliseBy::training, "training"},
                                                  {NormaliseBy::speaker, "speaker"},
                                                  {NormaliseBy::utterance, "utterance"},
                                                  {NormaliseBy::none, "none"}}};

std::vector<double> factors_of(const std::string& text) {
  std::vector<double> all;
  for (const auto& word : data::split(text, data::Tokenizer::whitespace)) {
    double factor = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), factor);
    if (error != std::errc() || end != word.data() + word.size() || !(factor >= 0.1 && factor <= 10))
      throw std::invalid_argument(
          "must be factors from 0.1 to 10 with spaces between, such as \"0.9 1 1.1\", got " + quote(text));
    all.push_back(factor);
  }
  if (all.empty()) all.push_back(1);
  return all;
}

// What data::FilterBank refuses, by the keys that set it. The rate is known.
void check_filter_bank(const Recipe& recipe, const data::FilterBankOptions& bank) {
  const double least = std::ceil(std::max(2000 / bank.frame_length, 1000 / bank.frame_shift));
  if (static_cast<double>(bank.rate) < least)
    recipe.refuse("features.rate", "must be at least " + number_text(least) +
                                       ", so that features.frame_length holds two samples and "
                                       "features.frame_shift one, got " +
                                       std::to_string(bank.rate));
  const double half = static_cast<double>(bank.rate) / 2, end = bank.high > 0 ? bank.high : half + bank.high;
  const std::string half_the_rate = number_text(half) + " Hz, half the rate";
  if (bank.low >= half)
    recipe.refuse("features.low", "must be below " + half_the_rate + ", got " + number_text(bank.low));
  if (end > half)
    recipe.refuse("features.high", "must be at most " + half_the_rate + ", got " + number_text(bank.high));
  if (end <= bank.low)
    recipe.refuse("features.high", "must end the bands above features.low = " + number_text(bank.low) +
                                       " Hz (0 and below count from " + half_the_rate + "), got " +
                                       number_text(bank.high));
}

}  // namespace

const char* name(Objective objective) {
  return name_of(kObjectives, objective);
}
const char* name(Units units) {
  return name_of(kUnits, units);
}
const char* name(NormaliseBy by) {
  return name_of(kNormaliseBy, by);
}

// One shape for all entries reads better than what fits on a line.
// clang-format off
void SpeechTaskOptions::describe(train::Keys& keys) {
  using data::NormalisationScale, data::WindowShape;
  using scores::AlignmentRule;
  using train::Value;

  keys.table("task", "What is learned, from which recordings.");
  keys.text("data", source.reader, "The reader of the recordings' format.", names_of(data::speech_readers()));
  keys.path("folder", source.folder,
            "Folder of the data. `--data` sets it; where both are empty, the environment's `QUATRAIN_DATA` "
            "counts.").may_change();
  keys.choice("objective", objective, {Objective::ctc, Objective::frames, Objective::utterance},
              "`ctc`: what is said, without knowing when. `frames`: the class of each frame, by the phones of `timit` or the alignments of `kaldi`. "
              "`utterance`: one label for a recording.");
  keys.choice("units", units, {Units::words, Units::characters, Units::phones},
              "What the tokens of `ctc` are. `phones` are the 39 of `timit`.").only("task.objective = ctc", [this] { return objective == Objective::ctc; });
  keys.text("dev_speakers", dev_speakers, "Speakers, with spaces between, that are the dev set; empty: the data's own. Of `timit` `dev50` are the 50 whom Kaldi takes.");
  keys.text("test_speakers", test_speakers, "Speakers, with spaces between, that are the test set; empty: the data's own. Of `timit` `core` are the 24 of the core test set.").may_change_in_answers();
  keys.flag("skip_bad", source.skip_bad,
            "Bad utterances (a missing or damaged file, no text, too short for its tokens) are counted and left out; else the first is an error.").may_change_in_answers();

  constexpr const char* kAudio = "features.source = audio";
  const auto of_audio = [this] { return !source.stored_features; };
  keys.table("features", "How sound becomes numbers: Kaldi's log-mel filter banks and their derivatives, which make one hypercomplex number of a band.");
  keys.add("source",
           [this] { return Value(std::string(source.stored_features ? "stored" : "audio")); },
           [this](const Value& value) { source.stored_features = std::get<std::string>(value) == "stored"; },
           "`audio`: of the recordings. `stored`: those of `feats.scp`, of `kaldi` data alone; they count as energies of bands.").values = {"audio", "stored"};
  keys.number("rate", bank.rate, 0, 1e6, "Samples in a second, to which recordings of other rates are brought; 0: the rate of the first one.").only(kAudio, of_audio);
  keys.number("bands", bank.bands, 1, 4096, "Bands of the filter bank; of stored features their columns count instead.").only(kAudio, of_audio);
  keys.number("frame_length", bank.frame_length, 1, 1000, "Milliseconds.").only(kAudio, of_audio);
  keys.number("frame_shift", bank.frame_shift, 1, 1000, "Milliseconds from one frame to the next.");
  keys.number("low", bank.low, 0, 1e6, "Hz, where the first band begins.").only(kAudio, of_audio);
  keys.number("high", bank.high, -1e6, 1e6, "Hz, where the last band ends; 0 and below: beside the Nyquist frequency.").only(kAudio, of_audio);
  keys.number("preemphasis", bank.preemphasis, 0, 1, "Of the sample before, which each sample loses.").only(kAudio, of_audio);
  keys.choice("window", bank.window, {WindowShape::povey, WindowShape::hamming, WindowShape::hanning}, "What a frame is multiplied by.").only(kAudio, of_audio);
  keys.flag("remove_dc_offset", bank.remove_dc_offset, "Subtracts a frame's mean.").only(kAudio, of_audio);
  keys.flag("snip_edges", bank.snip_edges, "Only frames that lie within the recording, as Kaldi's alignments have them.").only(kAudio, of_audio);
  keys.number("derivatives", derivatives, 0, 3, "The last derivative: 3 makes a quaternion of each band, 1 a complex number.");
  keys.choice("normalise", normalise, {NormaliseBy::training, NormaliseBy::speaker, NormaliseBy::utterance, NormaliseBy::none},
              "Whose frames have mean 0 and variance 1: the `training` set's, each `speaker`'s, or each `utterance`'s. To `predict`, a recording is a speaker of its own; "
              "answers while one speaks need `training` or `none`.");
  keys.choice("scale", scale, {NormalisationScale::quaternion, NormalisationScale::component},
              "What has a scale of its own: each band, whose components keep their relations, or each component.").only("features.derivatives above 0 and features.normalise other than none", [this] { return normalise != NormaliseBy::none && derivatives > 0; });
  keys.number("stack", stack, 1, 64, "Frames that the network reads as one, component by component: `ctc` then answers so many times less often.");
  keys.add("speeds", [this] { return Value(speeds); },
           [this](const Value& value) {
             factors_of(std::get<std::string>(value));
             speeds = std::get<std::string>(value);
           },
           "Speed perturbation: the training set comes once at each of these factors, such as `0.9 1 1.1`; empty: as it is. Not for `task.objective = frames`, whose labels have their times, nor for stored features.").only_augments();
  keys.number("band_masks", masks.band_masks, 0, 100, "SpecAugment: bands of training utterances that are masked, whole numbers of all components; 0: none.").only_augments();
  keys.number("widest_mask", masks.widest, 0, 4096, "Bands that a mask covers at most.").only_augments().only("features.band_masks above 0", [this] { return masks.band_masks > 0; });
  keys.number("time_masks", masks.time_masks, 0, 100, "SpecAugment: stretches of time that are masked; 0: none.").only_augments();
  keys.number("longest_mask", masks.longest, 0, 1e6, "Frames that a mask covers at most.").only_augments().only("features.time_masks above 0", [this] { return masks.time_masks > 0; });
  keys.number("mask_share", masks.most_share, 0, 1, "Share of an utterance that a mask covers at most.").only_augments().only("features.time_masks above 0", [this] { return masks.time_masks > 0; });

  keys.table("model", "Recurrent layers, and a real linear layer that scores classes.");
  describe_recurrent(keys, model);
  describe_directions(keys, model);

  keys.table("train", "How it is trained.");
  keys.number("batch_seconds", batch_seconds, 0, 1e9, "Most seconds of a batch, padding included; 0: `batch` utterances. With both, the smaller batch.");
  keys.number("samples", samples, 0, 1000, "Utterances of the dev set that `train` shows with their answers at each evaluation.").may_change().only("task.objective = ctc or utterance, or task.data = timit", [this] { return has_tokens(); });

  keys.table("decode", "How scores of frames become an answer.");
  keys.number("beam", decode.beam, 1, 100000, "Of `ctc`: prefixes kept at each frame; 1: the best path.").may_change_in_answers().only("task.objective = ctc", [this] { return objective == Objective::ctc; });
  keys.number("best", decode.best, 1, 100000, "Of `ctc`: how many answers `predict` writes for a recording, with tabs between.").only_predicts().only("task.objective = ctc", [this] { return objective == Objective::ctc; });
  keys.flag("scores", decode.scores, "Of `ctc`: `predict` writes the score before each answer, with a tab between.").only_predicts().only("task.objective = ctc", [this] { return objective == Objective::ctc; });
  keys.path("language", decode.language, "Of `ctc`: an ARPA file of a back-off language model of the units, for a beam above 1; empty: none.").may_change();
  keys.number("language_weight", decode.language_weight, 0, 100, "What its log-probabilities are multiplied by.").may_change_in_answers().only("a file in decode.language", [this] { return !decode.language.empty(); });
  keys.number("insertion", decode.insertion, -1000, 1000, "What each token adds to the score of an answer: more lose fewer tokens and invent more. With a language model about 1.5 balances the two.").may_change_in_answers().only("task.objective = ctc or frames", [this] { return objective != Objective::utterance; });
  keys.number("threshold", decode.threshold, 0.1, 1000, "Of `ctc`: tokens whose log-probability at a frame is so far below the best one's are not looked at.").may_change_in_answers().only("task.objective = ctc and a decode.beam above 1", [this] { return objective == Objective::ctc && decode.beam > 1; });
  keys.number("prior_scale", decode.prior_scale, 0, 10, "Of `frames`: how much of the classes' log-priors is subtracted.").may_change_in_answers().only("task.objective = frames", [this] { return objective == Objective::frames; });
  keys.number("transition_scale", decode.transition_scale, 0, 100, "Of `frames`: what the log-probabilities of going from class to class are multiplied by.").may_change_in_answers().only("task.objective = frames", [this] { return objective == Objective::frames; });
  keys.choice("alignment", decode.alignment, {AlignmentRule::fewest_edits, AlignmentRule::sclite},
              "How errors are counted: `fewest_edits`, as Kaldi does, or with the weights of NIST's `sclite`.").may_change_in_answers();
  keys.flag("times", decode.times, "Answers of `predict` end with a tab and the seconds of each token (of each word, where these are characters), such as `0.25-0.61`.").only_predicts();
  keys.number("endpoint", decode.endpoint, 0, 1e4, "Of `ctc` in `predict --live`: an utterance ends when nothing was said for so many seconds, and the next one begins; 0: all sound is one utterance.").only_predicts().only("task.objective = ctc and model.bidirectional = false", [this] { return objective == Objective::ctc && !model.bidirectional(); });
  keys.number("piece", decode.piece, 1, 1e5, "Of bidirectional models: seconds of a long recording that are heard at a time.").may_change().only("model.bidirectional = true", [this] { return model.bidirectional(); });
  keys.number("context", decode.context, 0, 1e4, "Of bidirectional models: seconds heard before and after such a piece.").may_change().only("model.bidirectional = true", [this] { return model.bidirectional(); });
}
// clang-format on

void SpeechTaskOptions::check(const Recipe& recipe) const {
  check_recurrent(recipe, model);
  const nn::AlgebraSpec& algebra = model.algebra();
  const bool bands_known = !source.stored_features || columns_read;
  if (bands_known && inputs() % algebra.n != 0)
    recipe.refuse("features.bands", "times " + std::to_string(components() * stack) +
                                        " (derivatives + 1, times stack) must be divisible by n = " +
                                        std::to_string(algebra.n) + " (" + algebra.text() + "), got " +
                                        std::to_string(bank.bands));
  if (units == Units::phones && source.reader != "timit")
    recipe.refuse("task.units", "may be phones for timit alone, which says where they are (got task.data = " +
                                    source.reader + "); take words where the texts are phones");
  if (objective == Objective::frames) {
    if (source.reader != "timit" && source.reader != "kaldi")
      recipe.refuse("task.objective",
                    "may be frames for timit and kaldi alone, got task.data = " + source.reader);
    if (stack != 1)
      recipe.refuse("features.stack",
                    "must be 1 where task.objective = frames, got " + std::to_string(stack));
    if (speed_factors() != std::vector<double>{1})
      recipe.refuse("features.speeds",
                    "must be empty where task.objective = frames, whose labels have their times");
  }
  if (source.stored_features) {
    if (source.reader != "kaldi")
      recipe.refuse("features.source", "may be stored for kaldi alone, got task.data = " + source.reader);
    if (speed_factors() != std::vector<double>{1})
      recipe.refuse("features.speeds", "must be empty where features.source = stored");
  } else if (bank.rate > 0) {
    check_filter_bank(recipe, bank);
  }
  if (decode.best > decode.beam)
    recipe.refuse("decode.best", "must be at most decode.beam = " + std::to_string(decode.beam) + ", got " +
                                     std::to_string(decode.best));
  if (!decode.language.empty() && objective != Objective::ctc)
    recipe.refuse("decode.language", "is of task.objective = ctc alone");
  if (!decode.language.empty() && decode.beam == 1)
    recipe.refuse("decode.language", "needs a beam above 1 (decode.beam)");
  if (decode.insertion != 0 && objective == Objective::ctc && decode.beam == 1)
    recipe.refuse("decode.insertion", "needs a beam above 1 (decode.beam) where task.objective = ctc");
  if (masks.band_masks > 0 && masks.widest == 0)
    recipe.refuse("features.widest_mask", "must be above 0 for features.band_masks to hide something, got 0");
  if (masks.time_masks > 0 && (masks.longest == 0 || masks.most_share == 0))
    recipe.refuse(masks.longest == 0 ? "features.longest_mask" : "features.mask_share",
                  "must be above 0 for features.time_masks to hide something, got 0");
  if (model.sizes.share_directions && !model.bidirectional())
    recipe.refuse("model.share_directions", "needs model.bidirectional");
}

std::vector<double> SpeechTaskOptions::speed_factors() const {
  return factors_of(speeds);
}

models::RecurrentNetworkOptions SpeechTaskOptions::network(int64_t classes) const {
  models::RecurrentNetworkOptions sized = model;
  sized.sizes.input = inputs();
  return sized.classes(classes);
}

}  // namespace quatrain::tasks
