#pragma once

#include <cstdint>

#include "quatrain/api.h"
#include "quatrain/data/line_pairs.h"

namespace quatrain::data {

/// A language that is read backwards.
struct QUATRAIN_API ReverseOptions {
  int64_t shortest = 1;  ///< words of a line, drawn evenly from shortest .. longest
  int64_t longest = 10;
  int64_t symbols = 26;  ///< different words: a, b, .. z, aa, ab, ..
  int64_t train = 100000;
  int64_t dev = 500;
  int64_t test = 2000;
  uint64_t seed = 0;
};

/// Words, and the same words in reverse order:
///
///     q a x    ->    x a q
///
/// Training line i is a function of (seed, i) alone. No line of one set is in another, and dev and test lines
/// are all different. There are no groups.
///
/// Throws c10::Error where the options leave too few lines for a set.
QUATRAIN_API LinePairSplits generate_reverse(const ReverseOptions& options = {});

/// Line i of the training set.
QUATRAIN_API LinePair reverse_line(const ReverseOptions& options, int64_t i);

}  // namespace quatrain::data
