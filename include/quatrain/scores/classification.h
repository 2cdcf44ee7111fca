#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quatrain/api.h"

/// How good labels are beside the right ones.
namespace quatrain::scores {

/// What F1 needs to know of each label, in three columns a label, whose sums over examples count: answers of
/// this label that are right, answers of it, and examples of it.
QUATRAIN_API std::vector<int64_t> label_counts(int64_t answer, int64_t target, int64_t labels);

/// F1 = 2 right / (answers + examples) by sums of label_counts(): of two labels that of the second, of more
/// the mean over all. A label that is neither answered nor there counts as 0.
QUATRAIN_API double f1(std::span<const int64_t> sums);

}  // namespace quatrain::scores
