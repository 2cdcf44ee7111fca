#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "quatrain/api.h"
#include "quatrain/data/tokenizer.h"

namespace quatrain::data {

/// One labelled text. The line is stored as it was read, so that 50,000 film reviews take 70 MB; split()
/// gives its words.
struct QUATRAIN_API Example {
  std::string text;
  int64_t label = 0;
  int64_t group = -1;  ///< what results are broken down by (number of attractors), or -1
};

/// A dataset. The dev set selects; the test set is scored once. Where Quatrain makes the split, no text is in
/// two sets.
struct QUATRAIN_API Splits {
  std::vector<Example> train, dev, test;
  std::vector<std::string> labels;  ///< the label's name by its number
  std::string group_name;           ///< what `group` counts ("attractors"); empty where it means nothing
  Tokenizer tokenizer = Tokenizer::whitespace;  ///< how its texts are split into words
};

/// The share of the commonest label.
struct QUATRAIN_API Share {
  int64_t label = -1;
  int64_t count = 0;  ///< examples with that label
  int64_t total = 0;
  double share() const { return total == 0 ? 0.0 : static_cast<double>(count) / static_cast<double>(total); }
};

/// What a guesser of the commonest label gets. In each group it guesses that group's commonest label. Ties go
/// to the smaller label.
struct QUATRAIN_API Majority {
  Share overall;
  std::map<int64_t, Share> by_group;  ///< empty where no example has a group
};

/// Of examples with these labels and groups, as many as labels.
QUATRAIN_API Majority majority(const std::vector<int64_t>& labels, const std::vector<int64_t>& groups);
QUATRAIN_API Majority majority(const std::vector<Example>& examples);

}  // namespace quatrain::data
