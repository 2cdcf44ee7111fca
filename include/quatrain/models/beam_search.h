#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::models {

/// What the sum of the log-probabilities of a hypothesis of L tokens, its end mark included, is divided by.
///   power   L^alpha (fairseq, CTranslate2)
///   wu      ((5 + L) / 6)^alpha (Wu et al. 2016, Tensor2Tensor)
enum class LengthPenalty { power, wu };
QUATRAIN_API const char* name(LengthPenalty penalty);
/// An unknown name is an error that lists the known ones.
QUATRAIN_API LengthPenalty parse_length_penalty(std::string_view name);

/// How targets are searched for.
struct QUATRAIN_API SearchOptions {
  int64_t beam = 4;  ///< hypotheses kept at each step; 1: greedy
  int64_t best = 1;  ///< how many are returned, at most `beam`
  LengthPenalty penalty = LengthPenalty::power;
  double alpha = 1;  ///< of the penalty; 0: none
  /// A sentence is done when no living hypothesis can win any more; of 1 or more: at the latest when
  /// beam * patience hypotheses are finished.
  double patience = 0;
  int64_t shortest = 0;                 ///< the end mark may follow after so many tokens
  int64_t begin = 2, end = 3, pad = 0;  ///< the marks' numbers; `begin` and `pad` are never chosen
  int64_t no_repeat = 0;  ///< no so many tokens in a row come twice in a hypothesis; 0: they may
  /// Tokens in a row that never come in a hypothesis; one alone never comes at all.
  std::vector<std::vector<int64_t>> banned = {};
};

/// A finished target.
struct QUATRAIN_API Hypothesis {
  std::vector<int64_t> tokens;       ///< without the marks
  std::vector<double> token_scores;  ///< log-probability of each, and of the end mark
  double log_probability = 0;        ///< their sum
  double score = 0;                  ///< the same with the length penalty, by which hypotheses are ranked
};

/// Thrown where a model's scores for a sentence are not finite.
class QUATRAIN_API NotFiniteError : public c10::ValueError {
 public:
  explicit NotFiniteError(size_t sentence)
      : c10::ValueError({__func__, __FILE__, __LINE__}, "beam_search: the model's scores are not finite"),
        sentence_(sentence) {}
  size_t sentence() const { return sentence_; }  ///< its place, from 0

 private:
  size_t sentence_;
};

/// One step of a model for a batch of hypotheses: the last token of each, and of which row of the step before
/// it continues; at the first step, of which sentence. Returns the scores (logits) of what follows, (rows,
/// vocabulary). See Seq2SeqDecoder::step.
using Step =
    std::function<at::Tensor(const std::vector<int64_t>& tokens, const std::vector<int64_t>& parents)>;

/// What is searched for one sentence.
struct QUATRAIN_API SearchTask {
  int64_t longest = 200;        ///< tokens of a target without marks; there the end mark is forced
  std::vector<int64_t> prefix;  ///< with which each hypothesis begins
  /// As SearchOptions::banned, for this sentence alone.
  std::vector<std::vector<int64_t>> banned = {};
};

/// Beam search for several sentences at once; those that are done leave the batch. At the first step each has
/// one row. Of the 2 * beam best continuations, those of the first `beam` that end are finished, and the
/// best `beam` of the others live on. A sentence is done when no living one can win any more, not even if all
/// its further tokens were certain. With a beam of 1 it is done when the likeliest token is the end mark, and
/// with a patience, when beam * patience hypotheses are finished (Kasai et al. 2022).
///
/// Tokens that may not follow a hypothesis have a probability there, which goes to no other token. The prefix
/// may have what is banned and repeat itself. A hypothesis that nothing may follow ends.
///
/// Returns for each sentence its `best` hypotheses, the best first; fewer where there are not so many. Equal
/// scores are ordered by row, then by token. Scores that are not finite are a NotFiniteError.
QUATRAIN_API std::vector<std::vector<Hypothesis>> beam_search(const Step& step,
                                                              const std::vector<SearchTask>& sentences,
                                                              const SearchOptions& options = {});

/// The divisor of a hypothesis of this length, the end mark included.
QUATRAIN_API double length_penalty(const SearchOptions& options, int64_t length);

}  // namespace quatrain::models
