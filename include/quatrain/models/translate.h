#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "quatrain/models/beam_search.h"
#include "quatrain/models/ensemble.h"
#include "quatrain/models/shortlist.h"

namespace quatrain::models {

/// The type in which the output layer computes scores while targets are searched for.
///   float32   the model's own
///   bfloat16  its weights are rounded once for a call of translate(); all other layers stay as they are
enum class Projection { float32, bfloat16 };
QUATRAIN_API const char* name(Projection projection);
/// An unknown name is an error that lists the known ones.
QUATRAIN_API Projection parse_projection(std::string_view name);

/// How sources are translated.
struct QUATRAIN_API TranslationOptions {
  SearchOptions search;
  /// A target has at most longest_factor * (tokens of its source) + longest_offset tokens, and at most
  /// `longest`.
  double longest_factor = 2;
  int64_t longest_offset = 20;
  int64_t longest = 500;
  /// A target is a function of its source alone, bit for bit, whatever else is in the batch and however many
  /// threads there are: every product is made by one thread and takes one way, and one whose bits would
  /// depend on the number of rows is filled up to 32 of them; a text takes as many places as follow from its
  /// length (a multiple of 32), as do all of its batch; batches are shared out to the threads. False: the
  /// planner is free and all threads work on one batch; scores then agree to about 1e-5.
  bool exact = true;
  Projection projection = Projection::float32;
  /// Where given, a target has only tokens that are listed for its source, and those of its prefix:
  /// log-probabilities are over these alone, and banned sequences with another token do not matter. The
  /// models' outputs must be real; else std::invalid_argument.
  std::shared_ptr<const Shortlist> shortlist = nullptr;
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

/// The log-probability of each token of given targets and of their end marks, in the order of the pairs: over
/// the whole vocabulary, whatever the shortlist, and in the model's own type.
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
