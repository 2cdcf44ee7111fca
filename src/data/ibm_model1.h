#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "quatrain/data/line_pair_loader.h"

namespace quatrain::data {

struct QUATRAIN_API Model1Options {
  int64_t best = 50;       ///< target tokens that are wanted of each source token, at most
  int64_t iterations = 5;  ///< of expectation maximisation
  /// How many target tokens a source token keeps after the first iteration: those that it occurs with most.
  int64_t candidates = 512;
  /// Is told of each iteration, from 1, before it begins.
  std::function<void(int64_t iteration)> tell = {};
  /// Is called now and then; what it throws ends the work.
  std::function<void()> after_pairs = {};
};

/// Which target tokens translate a source token, by IBM model 1 (Brown et al. 1993): each target token of a
/// pair is the translation of one of the source's, and t(target | source) is found by expectation
/// maximisation. The mark of the source's end is a token like others, and stands for what has no word in the
/// source. A function of the pairs and the options alone.
///
/// `sources`, `targets`: sizes of the vocabularies. Returns for each source token its `best` target tokens,
/// the likeliest first, equal ones by their number; fewer where it occurs with fewer.
///
/// Memory: candidates * 16 bytes for each source token at most, and in the first iteration 128 MB. The pairs
/// themselves stay in their mapped file.
QUATRAIN_API std::vector<std::vector<int64_t>> likely_targets(const EncodedLinePairs& pairs, int64_t sources,
                                                              int64_t targets,
                                                              const Model1Options& options = {});

}  // namespace quatrain::data
