#include "cli/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace quatrain::cli {
namespace {

// Where two models of which neither is better are trained and tested: examples are hard or easy for both,
// each model has examples that suit it, each run is lucky or not, and the rest is the chance of an answer.
class World {
 public:
  explicit World(uint64_t seed) : engine_(seed) {}

  // `luck` moves the accuracy of a run by some .13 of itself.
  std::vector<Answers> models(const std::vector<double>& luck, size_t seeds, size_t examples) {
    std::vector<double> ease(examples);
    for (double& one : ease) one = 1.6 + 1.6 * normal();
    std::vector<Answers> all;
    for (const double deviation : luck) {
      std::vector<double> own = ease;
      for (double& one : own) one += 0.5 * normal();
      Answers& answers = all.emplace_back(seeds, std::vector<double>(examples));
      for (auto& run : answers) {
        const double shift = deviation * normal();
        for (size_t i = 0; i < examples; ++i) run[i] = own[i] + shift + normal() > 0 ? 1 : 0;
      }
    }
    return all;
  }

 private:
  double normal() { return distribution_(engine_); }
  std::mt19937_64 engine_;
  std::normal_distribution<double> distribution_;
};

bool excludes_zero(const Interval& interval) {
  return interval.low > 0 || interval.high < 0;
}

// Only the examples: what a bootstrap of them, averaged over seeds, comes to.
bool excludes_zero_by_examples(const Answers& a, const Answers& b) {
  std::vector<double> differences(a.front().size());
  for (size_t s = 0; s < a.size(); ++s)
    for (size_t i = 0; i < differences.size(); ++i)
      differences[i] += (a[s][i] - b[s][i]) / static_cast<double>(a.size());
  const Spread of = spread(differences);
  return std::abs(of.mean) > 1.96 * of.deviation / std::sqrt(static_cast<double>(differences.size()));
}

// 600 comparisons without a difference: 5% of errors has a standard error of .9%.
TEST(Difference, errs_in_one_case_of_twenty) {
  constexpr int kWorlds = 600;
  struct Case {
    double first, second;
    size_t seeds;
  };
  for (const Case& one : {Case{0.11, 0.04, 5}, Case{0.08, 0.08, 10}, Case{0, 0, 5}, Case{0.11, 0.04, 3}}) {
    World world(7);
    int errors = 0, by_examples = 0;
    for (int i = 0; i < kWorlds; ++i) {
      const auto models = world.models({one.first, one.second}, one.seeds, 600);
      errors += excludes_zero(difference(models[0], models[1])) ? 1 : 0;
      by_examples += excludes_zero_by_examples(models[0], models[1]) ? 1 : 0;
    }
    SCOPED_TRACE(testing::Message() << one.first << ", " << one.second << ", seeds " << one.seeds << ": "
                                    << errors << ", by examples alone " << by_examples);
    EXPECT_LE(errors, 0.077 * kWorlds);
    EXPECT_GE(errors, 0.010 * kWorlds);  // three seeds have so few degrees of freedom that it is careful
    if (one.first > 0.1) {
      EXPECT_GE(by_examples, 0.1 * kWorlds);
    }
  }
}

// Five twins beside one: one comparison in twenty finds any difference.
TEST(Difference, intervals_of_several_twins_hold_together) {
  constexpr int kWorlds = 500;
  World world(3);
  int together = 0, alone = 0;
  for (int i = 0; i < kWorlds; ++i) {
    const auto models = world.models({0.08, 0.08, 0.08, 0.08, 0.08, 0.08}, 5, 200);
    bool any_together = false, any_alone = false;
    for (size_t m = 1; m < models.size(); ++m) {
      any_together |= excludes_zero(difference(models[m], models[0], 5));
      any_alone |= excludes_zero(difference(models[m], models[0]));
    }
    together += any_together ? 1 : 0;
    alone += any_alone ? 1 : 0;
  }
  EXPECT_LE(together, 0.07 * kWorlds);
  EXPECT_GE(alone, 0.10 * kWorlds);
}

TEST(Difference, finds_one_that_is_there) {
  World world(1);
  auto models = world.models({0.04, 0.04}, 5, 1000);
  for (auto& run : models[0])
    for (size_t i = 0; i < run.size(); i += 8) run[i] = 1;  // of which some were right before
  const Interval interval = difference(models[0], models[1]);
  EXPECT_GT(interval.low, 0);
  EXPECT_EQ(verdict(interval, 0.01), Verdict::ahead);
  EXPECT_EQ(verdict(difference(models[1], models[0]), 0.01), Verdict::behind);
}

TEST(Difference, has_two_levels) {
  // Equal examples, seeds that differ: the mean's deviation is that of the seeds, Student's with Welch's
  // degrees.
  const Answers a{std::vector<double>(10, 0.5), std::vector<double>(10, 0.7)};
  const Answers b{std::vector<double>(10, 0.3), std::vector<double>(10, 0.3)};
  const Interval seeds = difference(a, b);
  EXPECT_NEAR(seeds.mean, 0.3, 1e-12);
  EXPECT_NEAR(seeds.high - seeds.mean, 12.7062047 * 0.1, 1e-6);
  // Equal seeds: that of the examples.
  const Answers c{{1, 0, 1, 1}, {1, 0, 1, 1}}, d{{0, 0, 1, 0}, {0, 0, 1, 0}};
  const Interval examples = difference(c, d);
  EXPECT_NEAR(examples.mean, 0.5, 1e-12);
  EXPECT_NEAR(examples.mean - examples.low, student_t(0.025, 3) * std::sqrt(1.0 / 3 / 4), 1e-9);
  const Interval same = difference(c, c);
  EXPECT_EQ(same.low, 0);
  EXPECT_EQ(same.high, 0);
  EXPECT_EQ(verdict(same, 0.01), Verdict::level);
  EXPECT_EQ(verdict({0, -0.02, 0.005}, 0.01), Verdict::open);
  const Interval one = difference({{1, 0}}, {{0, 0}});
  EXPECT_EQ(one.mean, 0.5);
  EXPECT_TRUE(std::isnan(one.low) && std::isnan(one.high));
  EXPECT_THROW(difference({{1, 0}}, {{1, 0, 1}}), std::invalid_argument);
  EXPECT_THROW(difference({}, {}), std::invalid_argument);
}

TEST(Statistics, student_t_is_that_of_the_tables) {
  EXPECT_NEAR(student_t(0.025, 1), 12.70620474, 1e-7);
  EXPECT_NEAR(student_t(0.025, 3.5), 2.94008864, 1e-7);
  EXPECT_NEAR(student_t(0.003125, 9), 3.54650850, 1e-7);
  EXPECT_NEAR(student_t(0.025, 1e6), 1.95996636, 1e-7);
  EXPECT_NEAR(student_t(1e-6, 4), 41.57785415, 1e-6);
  EXPECT_NEAR(student_t(0.5, 4), 0, 1e-9);
  EXPECT_THROW(student_t(0, 4), std::invalid_argument);
  EXPECT_THROW(student_t(0.025, 0.5), std::invalid_argument);
}

TEST(Statistics, spread_is_that_of_a_sample) {
  EXPECT_EQ(spread({3}).deviation, 0);
  EXPECT_NEAR(spread({1, 2, 3, 4}).deviation, std::sqrt(5.0 / 3), 1e-12);
  EXPECT_EQ(spread({1, 2, 3, 4}).mean, 2.5);
}

}  // namespace
}  // namespace quatrain::cli
