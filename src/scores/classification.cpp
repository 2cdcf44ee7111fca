#include "quatrain/scores/classification.h"

#include <algorithm>
#include <stdexcept>

namespace quatrain::scores {
namespace {

double share(int64_t part, int64_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

template <class Counts>
auto& counts_of(Counts& of_label, int64_t label) {
  if (label < 0 || label >= std::ssize(of_label))
    throw std::invalid_argument("LabelTally: labels must be from 0 to " +
                                std::to_string(std::ssize(of_label) - 1) + ", got " + std::to_string(label));
  return of_label[static_cast<size_t>(label)];
}

}  // namespace

double LabelCounts::precision() const {
  return share(right, answers);
}

double LabelCounts::recall() const {
  return share(right, examples);
}

double LabelCounts::f1() const {
  return share(2 * right, answers + examples);
}

LabelTally::LabelTally(int64_t labels) {
  if (labels < 0)
    throw std::invalid_argument("LabelTally: the number of labels must not be negative, got " +
                                std::to_string(labels));
  of_label_.resize(static_cast<size_t>(labels));
}

const LabelCounts& LabelTally::of(int64_t label) const {
  return counts_of(of_label_, label);
}

void LabelTally::add(int64_t answer, int64_t target) {
  LabelCounts &answered = counts_of(of_label_, answer), &wanted = counts_of(of_label_, target);
  answered.right += answer == target;
  ++answered.answers;
  ++wanted.examples;
  ++confusions_[{target, answer}];
}

LabelCounts LabelTally::all() const {
  LabelCounts sum;
  for (const auto& [right, answers, examples] : of_label_) {
    sum.right += right;
    sum.answers += answers;
    sum.examples += examples;
  }
  return sum;
}

double LabelTally::f1() const {
  if (labels() == 2) return of(1).f1();
  double sum = 0;
  int64_t met = 0;
  for (const LabelCounts& label : of_label_) {
    if (label.answers + label.examples == 0) continue;
    sum += label.f1();
    ++met;
  }
  return met == 0 ? 0 : sum / static_cast<double>(met);
}

std::string LabelTally::confusion_table(const std::vector<std::string>& names,
                                        const std::string& title) const {
  if (names.size() != of_label_.size())
    throw std::invalid_argument("LabelTally: there must be a name for each of " + std::to_string(labels()) +
                                " labels, got " + std::to_string(names.size()));
  using Line = std::pair<std::pair<int64_t, int64_t>, int64_t>;
  std::vector<Line> lines(confusions_.begin(), confusions_.end());
  std::ranges::stable_sort(lines, {}, [](const Line& line) {
    return std::pair(line.first.first == line.first.second, -line.second);
  });
  std::string table = title + "\tanswer\tcount\n";
  for (const auto& [pair, count] : lines)
    table += names[static_cast<size_t>(pair.first)] + "\t" + names[static_cast<size_t>(pair.second)] + "\t" +
             std::to_string(count) + "\n";
  return table;
}

}  // namespace quatrain::scores
