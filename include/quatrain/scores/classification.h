#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "quatrain/api.h"

/// How good labels are beside the right ones.
namespace quatrain::scores {

/// What answers say of a label, or of all labels together. A share of nothing is 0.
struct QUATRAIN_API LabelCounts {
  int64_t right = 0;     ///< answers of this label to examples of it
  int64_t answers = 0;   ///< answers of this label
  int64_t examples = 0;  ///< examples of it

  double precision() const;  ///< right / answers
  double recall() const;     ///< right / examples; of all labels together this is the accuracy
  double f1() const;         ///< 2 right / (answers + examples)
};

/// The answers to a set of examples.
class QUATRAIN_API LabelTally {
 public:
  /// Labels are numbered from 0. A negative number of them, and labels and names that do not belong to them,
  /// are a std::invalid_argument.
  explicit LabelTally(int64_t labels);

  void add(int64_t answer, int64_t target);

  int64_t labels() const { return static_cast<int64_t>(of_label_.size()); }
  LabelCounts all() const;
  const LabelCounts& of(int64_t label) const;
  /// Of two labels the F1 of the second, of more the mean over those that are answered or there, as
  /// scikit-learn's macro average has it; 0 without any.
  double f1() const;
  /// The confusion matrix as a file of lines, under the line TITLE, tab, "answer", tab, "count": wrong
  /// answers before right ones, the most frequent first. Pairs that did not occur have no line.
  std::string confusion_table(const std::vector<std::string>& names, const std::string& title) const;

 private:
  std::vector<LabelCounts> of_label_;
  std::map<std::pair<int64_t, int64_t>, int64_t> confusions_;  // examples by (target, answer)
};

}  // namespace quatrain::scores
