#pragma once

#include <cstdint>

#include "quatrain/api.h"

namespace quatrain::data {

struct TextPairSplits;

/// The generated entailment task.
struct QUATRAIN_API EntailmentOptions {
  int64_t train = 20000;
  int64_t dev = 1000;
  int64_t test = 2000;
  double order_share = 0.5;  ///< of pairs of the order part
  uint64_t seed = 0;
};

/// Pairs of sentences: does the second follow from the first (entailment), not follow (neutral), or
/// contradict it? Half of a set is of either part, which is the group:
///
///   0 alignment  "the old dog does not sleep" -> "the animal does not sleep"     entailment
///                "the dog sleeps" -> "the animal does not sleep"                 contradiction
///                "the dog sleeps" -> "the vehicle sleeps"                        neutral
///   1 order      "the dog sees the baker" -> "the animal sees the person"        entailment
///                "the dog sees the baker" -> "the person sees the animal"        neutral
///
/// In the alignment part words must be compared across the sentences: a word of either sentence alone says
/// nothing of the label. In the order part both pairs of an example above are always in the same set, so that
/// whoever does not see the order of words is right in exactly half of them. No pair occurs twice.
QUATRAIN_API TextPairSplits generate_entailment(const EntailmentOptions& options = {});

}  // namespace quatrain::data
