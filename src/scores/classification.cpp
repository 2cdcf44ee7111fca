#include "quatrain/scores/classification.h"

namespace quatrain::scores {
namespace {

constexpr size_t kColumns = 3;  // right answers, answers, examples

double f1_of(std::span<const int64_t> label) {
  const int64_t both = label[1] + label[2];
  return both == 0 ? 0 : 2 * static_cast<double>(label[0]) / static_cast<double>(both);
}

}  // namespace

std::vector<int64_t> label_counts(int64_t answer, int64_t target, int64_t labels) {
  std::vector<int64_t> counts(kColumns * static_cast<size_t>(labels));
  const auto column = [&](int64_t label) { return kColumns * static_cast<size_t>(label); };
  if (answer == target) ++counts[column(answer)];
  ++counts[column(answer) + 1];
  ++counts[column(target) + 2];
  return counts;
}

double f1(std::span<const int64_t> sums) {
  const size_t labels = sums.size() / kColumns;
  if (labels == 2) return f1_of(sums.subspan(kColumns, kColumns));
  double sum = 0;
  for (size_t label = 0; label < labels; ++label) sum += f1_of(sums.subspan(kColumns * label, kColumns));
  return labels == 0 ? 0 : sum / static_cast<double>(labels);
}

}  // namespace quatrain::scores
