#include "quatrain/data/example.h"

namespace quatrain::data {
namespace {

using Counts = std::map<int64_t, int64_t>;

Share commonest(const Counts& counts) {
  Share best;
  for (const auto& [label, count] : counts) {
    best.total += count;
    if (count > best.count) {
      best.label = label;
      best.count = count;
    }
  }
  return best;
}

}  // namespace

Majority majority(const std::vector<int64_t>& labels, const std::vector<int64_t>& groups) {
  Counts all;
  std::map<int64_t, Counts> by_group;
  for (size_t i = 0; i < labels.size(); ++i) {
    ++all[labels[i]];
    if (groups[i] >= 0) ++by_group[groups[i]][labels[i]];
  }
  Majority result{commonest(all), {}};
  for (const auto& [group, counts] : by_group) result.by_group[group] = commonest(counts);
  return result;
}

Majority majority(const std::vector<Example>& examples) {
  std::vector<int64_t> labels, groups;
  for (const auto& example : examples) {
    labels.push_back(example.label);
    groups.push_back(example.group);
  }
  return majority(labels, groups);
}

}  // namespace quatrain::data
