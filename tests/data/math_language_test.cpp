#include "quatrain/data/math_language.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdio>
#include <map>
#include <set>

namespace quatrain::data {
namespace {

using testing::HasSubstr;

struct Question {
  std::map<char, int64_t> values;
  char left, sign, right;
  int64_t answer() const {
    const int64_t a = values.at(left), b = values.at(right);
    return sign == '+' ? a + b : sign == '-' ? a - b : a * b;
  }
  std::string asked() const {
    return std::to_string(values.at(left)) + sign + std::to_string(values.at(right));
  }
};

Question question_of(const std::string& source) {
  Question parsed;
  char a, b;
  long u, v;
  EXPECT_EQ(std::sscanf(source.c_str(), "%c=%ld,%c=%ld,%c%c%c:", &a, &u, &b, &v, &parsed.left, &parsed.sign,
                        &parsed.right),
            7)
      << source;
  parsed.values = {{a, u}, {b, v}};
  EXPECT_EQ(parsed.values.size(), 2U) << source;
  return parsed;
}

MathOptions few_lines(MathSplit split = MathSplit::strict) {
  MathOptions options;
  options.split = split;
  options.train = 20000;
  options.dev = 500;
  options.test = 2000;
  return options;
}

TEST(MathLanguage, AnswersAreRight) {
  const LinePairSplits splits = generate_math(few_lines());
  EXPECT_THAT(splits.groups, testing::ElementsAre("+", "+ same", "-", "- same", "*", "* same"));
  std::map<int64_t, int64_t> groups;
  std::map<char, int64_t> first;
  for (const auto* set : {&splits.train, &splits.dev, &splits.test})
    for (const LinePair& line : *set) {
      const Question parsed = question_of(line.source);
      EXPECT_EQ(std::to_string(parsed.answer()), line.target) << line.source;
      const std::string group = std::string(1, parsed.sign) + (parsed.left == parsed.right ? " same" : "");
      EXPECT_EQ(splits.groups[static_cast<size_t>(line.group)], group);
      for (const auto& [variable, value] : parsed.values) EXPECT_TRUE(value >= -1000 && value < 1000);
      ++groups[line.group];
      ++first[line.source[0]];
    }
  for (const auto& [group, count] : groups)
    EXPECT_NEAR(static_cast<double>(count) / 22500, 1.0 / 6, 0.01) << group;
  EXPECT_NEAR(static_cast<double>(first['x']) / 22500, 0.5, 0.015);
}

TEST(MathLanguage, SetsDoNotOverlap) {
  for (const MathSplit split : {MathSplit::paper, MathSplit::strict}) {
    const LinePairSplits splits = generate_math(few_lines(split));
    std::set<std::string> lines, questions;
    for (const auto* set : {&splits.dev, &splits.test})
      for (const LinePair& line : *set) {
        EXPECT_TRUE(lines.insert(line.source).second) << line.source;
        questions.insert(question_of(line.source).asked());
      }
    int64_t renamed = 0;
    for (const LinePair& line : splits.train) {
      EXPECT_FALSE(lines.contains(line.source)) << line.source;
      renamed += questions.contains(question_of(line.source).asked());
    }
    EXPECT_EQ(renamed > 0, split == MathSplit::paper) << name(split) << ": " << renamed;
  }
}

TEST(MathLanguage, ALineIsAFunctionOfSeedAndNumber) {
  MathOptions options = few_lines();
  const LinePairSplits splits = generate_math(options);
  for (const int64_t i : {0, 7, 19999})
    EXPECT_EQ(math_line(options, i), splits.train[static_cast<size_t>(i)]);
  options.train = 10;
  options.dev = 20;
  const LinePairSplits fewer = generate_math(options);
  EXPECT_TRUE(std::equal(fewer.train.begin(), fewer.train.end(), splits.train.begin()));
  EXPECT_TRUE(std::equal(fewer.dev.begin(), fewer.dev.end(), splits.dev.begin()));
  EXPECT_EQ(fewer.test, splits.test);
  options.seed = 1;
  EXPECT_NE(generate_math(options).train, fewer.train);
}

TEST(MathLanguage, OneDigitHasEnoughLines) {
  MathOptions options = few_lines();
  options.lowest = -9, options.highest = 10;
  options.dev = 200, options.test = 1000;
  EXPECT_EQ(generate_math(options).test.size(), 1000U);
}

TEST(MathLanguage, RefusesWhatCannotBe) {
  const auto refused = [](const MathOptions& options) {
    try {
      generate_math(options);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string("taken");
  };
  MathOptions options = few_lines();
  options.lowest = 0, options.highest = 3;
  EXPECT_THAT(refused(options), HasSubstr("different lines for the dev set, 500 were asked for"));
  options = few_lines();
  options.highest = options.lowest + 1;
  EXPECT_THAT(refused(options), HasSubstr("values must be at least two"));
  options = few_lines();
  options.test = 0;
  EXPECT_THAT(refused(options), HasSubstr("test must be at least 1, got 0"));
  EXPECT_THROW(parse_math_split("loose"), std::invalid_argument);
}

}  // namespace
}  // namespace quatrain::data
