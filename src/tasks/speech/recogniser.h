#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/feature_stream.h"
#include "quatrain/data/recent_rows.h"
#include "quatrain/data/resampler.h"
#include "tasks/speech/decoder.h"
#include "tasks/speech/model.h"

namespace quatrain::tasks {

/// The features of a recording whose samples come bit by bit, at any rate. `take` gets those that are final,
/// often none: (frames, components * bands).
class SoundFeatures {
 public:
  using Take = std::function<void(const at::Tensor& features)>;

  SoundFeatures(const SpeechTaskOptions& options, int64_t rate)
      : resampler_(rate, options.bank.rate), features_(options.bank, options.derivatives) {}

  void push(const at::Tensor& samples, const Take& take) { take(features_.push(resampler_.push(samples))); }
  void finish(const Take& take) {
    take(features_.push(resampler_.finish()));
    take(features_.finish());
  }

 private:
  data::Resampler resampler_;
  data::FeatureStream features_;
};

/// A network's scores of rows that come bit by bit. A network of one direction goes on from its state. One of
/// two directions hears pieces of decode.piece seconds, and decode.context seconds before and after each,
/// whose scores are not used: a recording that is no longer than piece and context is heard as a whole. What
/// is kept does not grow with the length of the recording.
class QUATRAIN_API ScoreStream {
 public:
  explicit ScoreStream(SpeechModel& model);

  /// Normalised features (frames, components * bands); the scores that are final now, (rows, classes).
  at::Tensor push(const at::Tensor& features);
  at::Tensor finish();
  /// A network of one direction goes on as at the beginning of a recording, as it was trained.
  void forget() { state_ = {}; }

 private:
  at::Tensor score(const at::Tensor& rows);
  at::Tensor score_pieces(bool last);

  SpeechModel* model_;
  models::RecurrentNetworkImpl::State state_;
  at::Tensor features_;      // that do not make a row yet
  data::RecentRows rows_;    // of two directions: those that are still needed
  int64_t scored_ = 0;       // rows whose scores were given
  int64_t piece_, context_;  // rows
};

/// A recording from its samples to what is said in it, bit by bit.
class Recogniser {
 public:
  /// `rate`: of the samples. `by`, which must live as long: whose mean and scale features get; null: none.
  Recogniser(SpeechModel& model, int64_t rate, const data::Normalisation* by);

  /// A LineError where the network's scores are not finite, here or at the end.
  void push(const at::Tensor& samples);
  /// So far, since the recording or its last utterance began. Times are the recording's.
  std::vector<HeardToken> heard() const;
  /// Rows of the recording that the network has scored.
  int64_t end() const { return before_ + rows_; }
  /// Ends an utterance; the recording goes on, and the network has forgotten what it heard.
  std::vector<HeardAnswer> end_utterance();
  std::vector<HeardAnswer> finish();

 private:
  void hear(const at::Tensor& features);
  void decode(const at::Tensor& scores);

  SpeechModel& model_;
  const data::Normalisation* by_;
  SoundFeatures features_;
  ScoreStream scores_;
  std::unique_ptr<SpeechDecoder> decoder_;
  int64_t before_ = 0, rows_ = 0;  // rows of the utterances before, and of this one
};

}  // namespace quatrain::tasks
