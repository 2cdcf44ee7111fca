#include "cli/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "quatrain/scores/bleu.h"

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
  EXPECT_EQ(verdict(interval, 0.01, true), Verdict::ahead);
  EXPECT_EQ(verdict(interval, 0.01, false), Verdict::behind);  // of an error rate
  EXPECT_EQ(verdict(difference(models[1], models[0]), 0.01, true), Verdict::behind);
  EXPECT_EQ(verdict(difference(models[1], models[0]), 0.01, false), Verdict::ahead);
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
  EXPECT_EQ(verdict(same, 0.01, true), Verdict::level);
  EXPECT_EQ(verdict({0, -0.02, 0.005}, 0.01, true), Verdict::open);
  const Interval one = difference({{1, 0}}, {{0, 0}});
  EXPECT_EQ(one.mean, 0.5);
  EXPECT_TRUE(std::isnan(one.low) && std::isnan(one.high));
  EXPECT_THROW(difference({{1, 0}}, {{1, 0, 1}}), std::invalid_argument);
  EXPECT_THROW(difference({}, {}), std::invalid_argument);
}

using Rows = std::vector<std::vector<int64_t>>;

double share_of(const std::vector<int64_t>& sums) {
  return static_cast<double>(sums[0]) / static_cast<double>(sums[1]);
}

// Lines of 5 to 30 words, of which each run of a model matches some more or less than of others: hard lines
// are hard for both models, and those of the second are shorter by its own luck.
class Translations {
 public:
  explicit Translations(uint64_t seed) : engine_(seed) {}

  std::vector<std::vector<Rows>> models(size_t count, size_t seeds, size_t lines, double luck) {
    std::vector<std::pair<int64_t, double>> line(lines);
    for (auto& [length, ease] : line)
      length = 5 + static_cast<int64_t>(engine_() % 26), ease = 0.3 + 0.8 * normal();
    std::vector<std::vector<Rows>> all(count);
    for (auto& model : all)
      for (size_t s = 0; s < seeds; ++s) {
        const double shift = luck * normal();
        Rows& rows = model.emplace_back();
        for (const auto& [length, ease] : line) rows.push_back(row(length, ease + shift));
      }
    return all;
  }

 private:
  // An n-gram matches if its first word and what follows do.
  std::vector<int64_t> row(int64_t length, double ease) {
    std::vector<int64_t> row(10);
    const int64_t written = std::max<int64_t>(4, length - 2 + static_cast<int64_t>(engine_() % 5));
    int64_t run = 0;
    for (int64_t i = 0; i < written; ++i) {
      run = ease + normal() > 0 ? run + 1 : 0;
      for (size_t k = 0; k < 4; ++k) row[k] += run > static_cast<int64_t>(k) ? 1 : 0;
    }
    for (size_t k = 0; k < 4; ++k) row[4 + k] = std::max<int64_t>(0, written - static_cast<int64_t>(k));
    row[8] = written, row[9] = length;
    return row;
  }
  double normal() { return distribution_(engine_); }
  std::mt19937_64 engine_;
  std::normal_distribution<double> distribution_;
};

double bleu_of_sums(const std::vector<int64_t>& sums) {
  scores::BleuCounts counts;
  std::copy_n(sums.begin(), 4, counts.matched.begin());
  std::copy_n(sums.begin() + 4, 4, counts.total.begin());
  counts.hypothesis_length = sums[8], counts.reference_length = sums[9];
  return scores::bleu(counts);
}

double bleu_of_rows(const Rows& rows, const std::vector<size_t>& chosen) {
  std::vector<int64_t> sums(10);
  for (const size_t i : chosen)
    for (size_t c = 0; c < sums.size(); ++c) sums[c] += rows[i][c];
  return bleu_of_sums(sums);
}

Answers contributions_of(const std::vector<Rows>& runs) {
  Answers all;
  for (const auto& rows : runs) all.push_back(contributions(rows, bleu_of_sums));
  return all;
}

TEST(Contributions, of_a_share_are_the_answers) {
  const Rows answers{{1, 1}, {0, 1}, {0, 1}, {1, 1}, {1, 1}};
  const auto values = contributions(answers, share_of);
  ASSERT_EQ(values.size(), answers.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], static_cast<double>(answers[i][0]), 1e-12) << i;
  EXPECT_EQ(contributions({{1, 2}}, share_of), std::vector<double>{0.5});
  EXPECT_TRUE(contributions({}, share_of).empty());
}

// Their mean is BLEU, and the spread of a difference that of a bootstrap of the lines.
TEST(Contributions, of_bleu_vary_as_resampled_lines_do) {
  constexpr size_t kLines = 500;
  Translations world(5);
  const auto models = world.models(2, 1, kLines, 0.1);
  std::vector<size_t> all(kLines);
  std::iota(all.begin(), all.end(), size_t{0});
  const auto first = contributions(models[0][0], bleu_of_sums),
             second = contributions(models[1][0], bleu_of_sums);
  EXPECT_NEAR(spread(first).mean, bleu_of_rows(models[0][0], all), 1e-9);
  std::vector<double> differences(kLines), resampled;
  for (size_t i = 0; i < kLines; ++i) differences[i] = first[i] - second[i];
  std::mt19937_64 engine(9);
  for (int sample = 0; sample < 2000; ++sample) {
    std::vector<size_t> chosen(kLines);
    for (size_t& one : chosen) one = engine() % kLines;
    resampled.push_back(bleu_of_rows(models[0][0], chosen) - bleu_of_rows(models[1][0], chosen));
  }
  const double error = spread(differences).deviation / std::sqrt(static_cast<double>(kLines));
  EXPECT_NEAR(error / spread(resampled).deviation, 1, 0.07);
}

// As of shares: 5% of errors, where lines alone would give many more.
TEST(Contributions, intervals_of_bleu_err_in_one_case_of_twenty) {
  constexpr int kWorlds = 400;
  Translations world(11);
  int errors = 0, by_lines = 0;
  for (int i = 0; i < kWorlds; ++i) {
    const auto models = world.models(2, 5, 150, 0.05);
    const Answers a = contributions_of(models[0]), b = contributions_of(models[1]);
    errors += excludes_zero(difference(a, b)) ? 1 : 0;
    by_lines += excludes_zero_by_examples(a, b) ? 1 : 0;
  }
  SCOPED_TRACE(testing::Message() << errors << ", by lines alone " << by_lines);
  EXPECT_LE(errors, 0.08 * kWorlds);
  EXPECT_GE(errors, 0.02 * kWorlds);
  EXPECT_GE(by_lines, 0.1 * kWorlds);
}

// Of few seeds and examples what the parts have in common may be more than one of them.
TEST(Difference, of_few_has_an_interval_too) {
  std::mt19937_64 engine(1);
  for (int i = 0; i < 2000; ++i) {
    Answers a(2, std::vector<double>(4)), b = a;
    for (auto* answers : {&a, &b})
      for (auto& run : *answers)
        for (double& one : run) one = static_cast<double>(engine() % 2);
    const Interval interval = difference(a, b);
    EXPECT_TRUE(interval.low <= interval.mean && interval.mean <= interval.high) << i;
  }
}

TEST(Statistics, student_t_is_that_of_the_tables) {
  EXPECT_NEAR(student_t(0.025, 1), 12.70620474, 1e-7);
  EXPECT_NEAR(student_t(0.025, 1.01), 12.41273850, 1e-6);  // with two seeds
  EXPECT_NEAR(student_t(0.025, 1.05), 11.36190767, 1e-6);
  EXPECT_NEAR(student_t(0.025, 1.4), 6.65700257, 1e-6);
  EXPECT_NEAR(student_t(1e-6, 1.1) / 102685.806901, 1, 1e-6);
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
