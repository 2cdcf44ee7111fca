#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/models/recognition.h"
#include "quatrain/models/word_model.h"

namespace quatrain::models {

/// How tokens are found in the frames of a CTC model.
struct QUATRAIN_API CtcDecoderOptions {
  int64_t blank = 0;
  int64_t beam = 1;  ///< prefixes kept at each frame; 1: the best path alone
  int64_t best = 1;  ///< how many recognitions are returned, at most `beam`
  /// In each frame no prefix grows by tokens whose log-probability is that much below the frame's best
  /// (others cut at a log-probability of -5, which is near it where the best is sure); infinity: by all.
  double token_threshold = 10;

  /// Adds language_weight * log p(token | tokens before it) to the score of each token, and at the end
  /// language_weight * log p(end | tokens).
  std::shared_ptr<const WordModel> language = nullptr;
  std::vector<int64_t> words = {};  ///< (C): the language model's word of each token; the blank's is not used
  double language_weight = 0.5;
  /// Is added to the score of each token. A language model makes texts shorter: with one about 1.5 gives
  /// insertions and deletions in equal numbers; tune it on held-out data.
  double insertion_bonus = 0;
};

/// Finds what was said in the log-probabilities of a CTC model (Graves et al. 2006), while they come.
///
/// With a beam of 1 it takes the best class of each frame, of equal ones the first, and joins repetitions
/// that no blank divides; the score is the log-probability of this path. A token's frames are those where it
/// is the best.
///
/// With a wider beam it is the prefix search of Hannun et al. (2014): the score is the logarithm of the
/// probabilities' sum over all paths of the tokens, and what language model and bonus add. The search is
/// exact where the beam holds all prefixes and token_threshold is infinite. A token's frames are those of the
/// best single path of these tokens.
///
/// Memory grows with the tokens found, not with the frames: what prefixes have in common is kept once, and
/// what no prefix of the beam needs is freed.
class QUATRAIN_API CtcDecoder {
 public:
  /// Options that are out of range, or do not fit each other, are an error.
  explicit CtcDecoder(CtcDecoderOptions options = {});
  ~CtcDecoder();
  CtcDecoder(CtcDecoder&&) noexcept;
  CtcDecoder& operator=(CtcDecoder&&) noexcept;

  /// Further frames of the utterance: log-probabilities (T, C) of any floating type, on any device. In pieces
  /// the result is the same. C that changes within an utterance or does not hold the blank, infinities, NaNs
  /// and what is no logarithm of a probability are errors, after which the decoder is as before.
  void push(const at::Tensor& log_probabilities);
  /// The best recognitions of the frames so far, the best first; fewer than `best` where there are not so
  /// many. The end's score is not in them. Without a frame, one without tokens.
  std::vector<Recognition> result() const;
  /// The first of them alone, which takes less time.
  Recognition best() const;
  /// The same with the language model's score of the end. A new utterance begins.
  std::vector<Recognition> finish();

  class Search;

 private:
  std::shared_ptr<const CtcDecoderOptions> options_;  // in one place, where the search finds them
  int64_t classes_ = 0;                               // of the utterance's frames; 0: none yet
  std::unique_ptr<Search> search_;
};

}  // namespace quatrain::models
