#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/models/recognition.h"

namespace quatrain::models {

/// Which label follows which from frame to frame, counted in training utterances whose frames have labels
/// (phones, or states of phones): how long labels last is in it, as the probability of following themselves.
///
/// So that nothing is impossible, `smoothing` is added to each count: .5 is Krichevsky and Trofimov's (1981).
/// All tensors are float64 natural logarithms of probabilities. Without a frame all classes are alike.
class QUATRAIN_API FrameTransitions {
 public:
  explicit FrameTransitions(int64_t classes, double smoothing = 0.5);

  /// Adds the labels of an utterance's frames, each from 0 to classes - 1; others are an error, and nothing
  /// is added. No labels add nothing.
  void add(std::span<const int64_t> labels);

  int64_t classes() const { return classes_; }
  int64_t frames() const;                ///< how many were added
  at::Tensor log_probabilities() const;  ///< (C, C): [i, j] that j follows i
  at::Tensor starts() const;             ///< (C): that an utterance begins with it
  at::Tensor ends() const;    ///< (C): that an utterance ends behind it, in place of what may follow
  at::Tensor priors() const;  ///< (C): of a frame
  at::Tensor seen() const;    ///< (C), bool: what was added at all; without a frame all

  /// The counts as int64 tensors: transitions (C, C), starts (C) and ends (C). More utterances can be added
  /// to what is loaded. Loading counts of other sizes, or no counts of utterances, is an error.
  std::map<std::string, at::Tensor> state() const;
  void load(const std::map<std::string, at::Tensor>& state);

 private:
  int64_t classes_;
  double smoothing_;
  at::Tensor transitions_, starts_, ends_;  // counts, int64
  at::Tensor of_class_;                     // (C): of each class, what follows and the ends: its frames
};

/// How much counts for the best sequence of labels.
struct QUATRAIN_API ViterbiOptions {
  double prior_scale = 1;       ///< that many times the log prior is subtracted from the log posterior
  double transition_scale = 1;  ///< of the log-probabilities of transitions, start and end
  double insertion = 0;         ///< is added wherever the label changes; below 0: fewer and longer segments
};

/// The most probable labels of the frames of an utterance, given their posteriors and what follows what
/// (Viterbi 1967), while the frames come.
///
/// A recognition's tokens are the runs of equal labels, without gaps. Frames cannot tell two equal phones in
/// a row from a long one: where that counts, label states of phones instead. The confidence is the mean
/// posterior of the label over its frames. The score is the sum of posteriors, less priors, and of
/// transitions, as ViterbiOptions weights them. Of equally good predecessors a label itself comes first, then
/// the first. A label that no frame was counted of is never an answer: its prior would make it the likeliest.
///
/// Memory: for each label the segments of its best path. Paths share what they have in common, which is all
/// but the last segments, and what no path needs is freed.
class QUATRAIN_API FrameViterbi {
 public:
  explicit FrameViterbi(const FrameTransitions& transitions, const ViterbiOptions& options = {});
  ~FrameViterbi();
  FrameViterbi(FrameViterbi&&) noexcept;
  FrameViterbi& operator=(FrameViterbi&&) noexcept;

  /// Further frames of the utterance: log posteriors (T, C) of any floating type, on any device. In pieces
  /// the result is the same. Another C, infinities, NaNs and what is no logarithm of a probability are
  /// errors, after which all is as before.
  void push(const at::Tensor& log_posteriors);
  /// The best labels of the frames so far, without the end's score.
  Recognition result() const;
  /// The same with the end's score. A new utterance begins.
  Recognition finish();

 private:
  struct Tables;
  struct Paths;

  std::unique_ptr<const Tables> tables_;
  std::unique_ptr<Paths> paths_;
};

/// The same for all frames (T, C) of an utterance at once.
QUATRAIN_API Recognition viterbi(const at::Tensor& log_posteriors, const FrameTransitions& transitions,
                                 const ViterbiOptions& options = {});

/// Of what was never seen: never chosen, and a number in every type (-9,984 in bfloat16).
constexpr double kUnseenLikelihood = -1e4;

/// Log posteriors (..., C) less prior_scale times the log priors, in the posteriors' type: by Bayes' rule
/// the log-likelihoods of the frames up to a number that is the same for all classes, as hybrid decoders
/// want them. Those of classes that no frame was counted of are kUnseenLikelihood.
QUATRAIN_API at::Tensor scaled_likelihoods(const at::Tensor& log_posteriors,
                                           const FrameTransitions& transitions, double prior_scale = 1);

}  // namespace quatrain::models
