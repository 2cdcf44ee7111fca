#include "quatrain/models/shortlist.h"

#include <algorithm>
#include <limits>

#include "nn/check.h"

namespace quatrain::models {
namespace {

std::vector<int32_t> ascending(const std::vector<int64_t>& tokens, int64_t targets) {
  for (const int64_t token : tokens)
    nn::require(token >= 0 && token < targets, "Shortlist: target tokens must be from 0 to ", targets - 1,
                ", got ", token);
  std::vector<int32_t> sorted(tokens.begin(), tokens.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

}  // namespace

Shortlist::Shortlist(const std::vector<std::vector<int64_t>>& lists, const std::vector<int64_t>& always,
                     int64_t targets)
    : targets_(targets), begins_{0} {
  constexpr auto kMost = static_cast<size_t>(std::numeric_limits<int32_t>::max());
  nn::require(targets >= 1 && static_cast<size_t>(targets) <= kMost,
              "Shortlist: there must be 1 to 2^31 - 1 target tokens, got ", targets);
  always_ = ascending(always, targets);
  for (const auto& list : lists) {
    const auto tokens = ascending(list, targets);
    nn::require(listed_.size() + tokens.size() <= kMost,
                "Shortlist: the lists must have at most 2^31 - 1 tokens in all");
    listed_.insert(listed_.end(), tokens.begin(), tokens.end());
    begins_.push_back(static_cast<int32_t>(listed_.size()));
  }
}

std::span<const int32_t> Shortlist::of(int64_t source) const {
  nn::require(source >= 0 && source < sources(), "Shortlist: source tokens must be from 0 to ", sources() - 1,
              ", got ", source);
  const auto token = static_cast<size_t>(source);
  return std::span(listed_).subspan(static_cast<size_t>(begins_[token]),
                                    static_cast<size_t>(begins_[token + 1] - begins_[token]));
}

std::vector<int64_t> Shortlist::tokens(const std::vector<int64_t>& source) const {
  std::vector<int64_t> all(always_.begin(), always_.end());
  for (const int64_t token : source) {
    const auto list = of(token);
    all.insert(all.end(), list.begin(), list.end());
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

}  // namespace quatrain::models
