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

Majority majority(const std::vector<Example>& examples) {
  Counts all;
  std::map<int64_t, Counts> groups;
  for (const auto& example : examples) {
    ++all[example.label];
    if (example.group >= 0) ++groups[example.group][example.label];
  }
  Majority result{commonest(all), {}};
  for (const auto& [group, counts] : groups) result.by_group[group] = commonest(counts);
  return result;
}

}  // namespace quatrain::data
