#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::data {

/// A line and what it is to become: a sentence and its translation, a question and its answer.
struct QUATRAIN_API LinePair {
  std::string source, target;
  int64_t group = -1;  ///< what results are broken down by, a place in PairSplits::groups, or -1
  bool operator==(const LinePair&) const = default;
};

/// A dataset of pairs. The dev set selects; the test set is scored once.
struct QUATRAIN_API PairSplits {
  std::vector<LinePair> train, dev, test;
  std::vector<std::string> groups;  ///< their names; empty where there are none
};

}  // namespace quatrain::data
