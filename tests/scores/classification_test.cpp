#include "quatrain/scores/classification.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace quatrain::scores {
namespace {

LabelTally tally_of(const std::vector<std::pair<int64_t, int64_t>>& answers, int64_t labels) {
  LabelTally tally(labels);
  for (const auto& [answer, target] : answers) tally.add(answer, target);
  return tally;
}

TEST(F1, OfTwoLabelsIsThatOfTheSecond) {
  EXPECT_DOUBLE_EQ(tally_of({{1, 1}, {1, 0}, {0, 1}, {1, 1}, {0, 0}, {0, 0}}, 2).f1(), 4.0 / 6);
  EXPECT_DOUBLE_EQ(tally_of({{0, 0}, {0, 0}}, 2).f1(), 0);
}

TEST(F1, OfMoreLabelsIsTheMean) {
  const double of_three = (1 + 2.0 / 3 + 0) / 3;
  EXPECT_DOUBLE_EQ(tally_of({{0, 0}, {1, 1}, {2, 1}}, 3).f1(), of_three);
  EXPECT_DOUBLE_EQ(tally_of({{0, 0}, {1, 1}, {2, 1}}, 5).f1(), of_three);  // two more that nobody met
  EXPECT_DOUBLE_EQ(tally_of({}, 3).f1(), 0);
}

TEST(LabelTally, RefusesWhatIsNoLabel) {
  LabelTally tally(2);
  for (const int64_t label : {-1, 2, 3000000}) {
    EXPECT_THROW(tally.add(label, 0), std::invalid_argument);
    EXPECT_THROW(tally.add(0, label), std::invalid_argument);
    EXPECT_THROW(tally.of(label), std::invalid_argument);
  }
  EXPECT_EQ(tally.all().answers, 0);
  EXPECT_THROW(tally.confusion_table({"one"}, "label"), std::invalid_argument);
  EXPECT_THROW(LabelTally(-1), std::invalid_argument);
}

TEST(LabelTally, CountsEachLabelAndAll) {
  const LabelTally tally = tally_of({{0, 0}, {0, 1}, {0, 1}, {1, 1}, {2, 0}}, 4);
  EXPECT_DOUBLE_EQ(tally.all().recall(), 2.0 / 5);
  EXPECT_DOUBLE_EQ(tally.of(0).precision(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(tally.of(0).recall(), 1.0 / 2);
  EXPECT_DOUBLE_EQ(tally.of(1).precision(), 1);
  EXPECT_DOUBLE_EQ(tally.of(1).recall(), 1.0 / 3);
  EXPECT_DOUBLE_EQ(tally.of(2).precision(), 0);
  EXPECT_DOUBLE_EQ(tally.of(2).recall(), 0);
  EXPECT_EQ(tally.of(3).examples, 0);
  EXPECT_DOUBLE_EQ(tally.of(3).precision(), 0);
}

TEST(LabelTally, ConfusionsHaveWrongAnswersFirst) {
  const LabelTally tally = tally_of({{0, 0}, {0, 0}, {0, 0}, {1, 0}, {0, 1}, {0, 1}, {1, 1}}, 3);
  EXPECT_EQ(tally.confusion_table({"bad", "good", "so so"}, "label"),
            "label\tanswer\tcount\ngood\tbad\t2\nbad\tgood\t1\nbad\tbad\t3\ngood\tgood\t1\n");
}

}  // namespace
}  // namespace quatrain::scores
