#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "quatrain/api.h"

namespace quatrain::models {

/// Which target tokens a sentence's translation may have: those that are likely for one of its source tokens,
/// and those that every sentence has. It never changes.
class QUATRAIN_API Shortlist {
 public:
  /// `lists`: of each source token its target tokens, `always`: those of every sentence, both in any order,
  /// from 0 to targets - 1; else std::invalid_argument. There are at most 2^31 - 1 of them in all.
  Shortlist(const std::vector<std::vector<int64_t>>& lists, const std::vector<int64_t>& always,
            int64_t targets);

  int64_t sources() const { return static_cast<int64_t>(begins_.size()) - 1; }  ///< source vocabulary
  int64_t targets() const { return targets_; }                                  ///< target vocabulary

  /// What a source token brings, and what every sentence has; ascending, each token once.
  std::span<const int32_t> of(int64_t source) const;
  std::span<const int32_t> always() const { return always_; }

  /// The target tokens of a sentence with these source tokens, ascending, each once. A source token outside
  /// the vocabulary is std::invalid_argument.
  std::vector<int64_t> tokens(const std::vector<int64_t>& source) const;

 private:
  int64_t targets_;
  std::vector<int32_t> begins_, listed_;  // source token s has listed_[begins_[s]] .. [begins_[s + 1]]
  std::vector<int32_t> always_;
};

}  // namespace quatrain::models
