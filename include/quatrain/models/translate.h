#pragma once

#include <functional>
#include <vector>

#include "quatrain/models/beam_search.h"
#include "quatrain/models/ensemble.h"

namespace quatrain::models {

/// How sources are translated.
struct QUATRAIN_API TranslationOptions {
  SearchOptions search;
  /// A target has at most longest_factor * (tokens of its source) + longest_offset tokens, and at most
  /// `longest`.
  double longest_factor = 2;
  int64_t longest_offset = 20;
  int64_t longest = 500;
  /// A target is a function of its source alone, bit for bit, whatever else is in the batch and however many
  /// threads there are: every product has at least 32 rows, is made by one thread and takes one way; batches
  /// are shared out to the threads. False: the planner is free and all threads work on one batch; scores then
  /// agree to about 1e-5.
  bool exact = true;
  int64_t batch = 32;           ///< most sentences at once
  int64_t batch_tokens = 4096;  ///< and most tokens of their sources (or given targets), padding included
};

/// Translates sources, tokens with the mark of their end, which are sorted by length for it, and returns the
/// `best` hypotheses of each in the order of the sources. `prefixes`: with which tokens each target begins;
/// empty: none. All models must be in eval mode. `after_batch`, where given, is called now and then by the
/// calling thread; what it throws ends the work.
QUATRAIN_API std::vector<std::vector<Hypothesis>> translate(
    const Ensemble& ensemble, const std::vector<std::vector<int64_t>>& sources,
    const TranslationOptions& options = {}, const std::vector<std::vector<int64_t>>& prefixes = {},
    const std::function<void()>& after_batch = {});

/// The log-probability of each token of given targets and of their end marks, in the order of the pairs.
QUATRAIN_API std::vector<std::vector<double>> score_targets(const Ensemble& ensemble,
                                                            const std::vector<std::vector<int64_t>>& sources,
                                                            const std::vector<std::vector<int64_t>>& targets,
                                                            const TranslationOptions& options = {});

/// For each token of given targets the place of a source's token, from 0: the one that the step which writes
/// the target's token pays most attention to. That is the mean over the heads of a decoder layer's
/// cross-attention and over the ensemble; component-wise attention has a map of weights for each component,
/// and the mean is over these maps too. The end mark counts only where the source has nothing else. `layer`:
/// from 0, or from the end, -1 the last. Of several places alike it is the first. Batches and exactness are
/// those of score_targets.
QUATRAIN_API std::vector<std::vector<int64_t>> align_targets(const Ensemble& ensemble,
                                                             const std::vector<std::vector<int64_t>>& sources,
                                                             const std::vector<std::vector<int64_t>>& targets,
                                                             const TranslationOptions& options = {},
                                                             int64_t layer = -1);

}  // namespace quatrain::models
