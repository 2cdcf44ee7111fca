#include "quatrain/scores/ranking.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

// tests/python/test_text_pairs.py compares the values with pytrec_eval's.
namespace quatrain::scores {
namespace {

TEST(Ranking, IsByScoreWithTheFiguresOfTheTextbook) {
  const std::vector<Candidate> candidates{
      {0.1f, true, "a"}, {0.9f, false, "b"}, {0.5f, true, "c"}, {0.4f, false, "d"}};
  const auto scores = score_ranking(candidates);
  EXPECT_DOUBLE_EQ(scores.average_precision, (1.0 / 2 + 2.0 / 4) / 2);
  EXPECT_DOUBLE_EQ(scores.reciprocal_rank, 0.5);
  EXPECT_DOUBLE_EQ(scores.precision_at_1, 0);
}

TEST(Ranking, OfEqualScoresTheLastNameComesFirst) {
  std::vector<Candidate> candidates{{0.5f, true, "D10"}, {0.5f, false, "D9"}, {0.5f, false, "D1"}};
  EXPECT_DOUBLE_EQ(score_ranking(candidates).average_precision, 0.5);
  candidates[0].document = "D91";
  EXPECT_DOUBLE_EQ(score_ranking(candidates).precision_at_1, 1);
}

TEST(Ranking, WithoutARelevantCandidateIsZero) {
  const std::vector<Candidate> candidates{{0.1f, false, "a"}};
  EXPECT_DOUBLE_EQ(score_ranking(candidates).average_precision, 0);
  EXPECT_DOUBLE_EQ(score_ranking({}).reciprocal_rank, 0);
}

TEST(Ranking, WhatIsNotANumberStandsLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<Candidate> candidates(100, {nan, false, "a"});
  candidates.push_back({-1.f, true, "b"});
  EXPECT_DOUBLE_EQ(score_ranking(candidates).reciprocal_rank, 1);
  candidates.push_back({nan, true, "c"});  // the first of the others, by its name
  EXPECT_DOUBLE_EQ(score_ranking(candidates).average_precision, 1);
}

}  // namespace
}  // namespace quatrain::scores
