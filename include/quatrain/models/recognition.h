#pragma once

#include <cstdint>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::models {

/// A token that was found in a signal.
struct QUATRAIN_API RecognisedToken {
  int64_t token = 0;
  int64_t begin = 0, end = 0;  ///< its frames, counted from the utterance's first; `end` is one past the last
  double confidence = 0;       ///< the mean of the token's probability over its frames, from 0 to 1
};

/// What was said.
struct QUATRAIN_API Recognition {
  std::vector<RecognisedToken> tokens;
  double score = 0;  ///< a logarithm, by which recognitions of one utterance are ranked
};

}  // namespace quatrain::models
