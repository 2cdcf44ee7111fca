#include "quatrain/data/reverse_language.h"

#include <algorithm>
#include <map>
#include <set>

#include "quatrain/data/tokenizer.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::HasSubstr;

ReverseOptions few_reversed() {
  ReverseOptions options;
  options.train = 3000, options.dev = 200, options.test = 500;
  return options;
}

TEST(ReverseLanguage, TargetsAreTheWordsBackwards) {
  auto options = few_reversed();
  options.shortest = 2, options.longest = 5, options.symbols = 28;
  const auto splits = generate_reverse(options);
  EXPECT_TRUE(splits.groups.empty());
  std::map<size_t, int64_t> lengths;
  std::set<std::string> words;
  for (const auto* set : {&splits.train, &splits.dev, &splits.test})
    for (const LinePair& line : *set) {
      auto source = split(line.source, Tokenizer::whitespace);
      ++lengths[source.size()];
      words.insert(source.begin(), source.end());
      std::reverse(source.begin(), source.end());
      EXPECT_EQ(split(line.target, Tokenizer::whitespace), source);
    }
  EXPECT_EQ(lengths.begin()->first, 2u);
  EXPECT_EQ(lengths.rbegin()->first, 5u);
  for (const auto& [length, count] : lengths) EXPECT_NEAR(static_cast<double>(count) / 3700, 0.25, 0.05);
  EXPECT_EQ(words.size(), 28u);
  EXPECT_TRUE(words.contains("a") && words.contains("z") && words.contains("aa") && words.contains("ab"));
}

TEST(ReverseLanguage, SetsDoNotOverlapAndLinesFollowTheirNumbers) {
  auto options = few_reversed();
  options.longest = 4;
  const auto splits = generate_reverse(options);
  std::set<std::string> apart;
  for (const auto* set : {&splits.dev, &splits.test})
    for (const LinePair& line : *set) EXPECT_TRUE(apart.insert(line.source).second) << line.source;
  for (const LinePair& line : splits.train) EXPECT_FALSE(apart.contains(line.source)) << line.source;
  EXPECT_EQ(reverse_line(options, 2999), splits.train[2999]);
  options.train = 10, options.dev = 20;
  const auto fewer = generate_reverse(options);
  EXPECT_EQ(fewer.test, splits.test);
  EXPECT_TRUE(std::equal(fewer.train.begin(), fewer.train.end(), splits.train.begin()));
  options.seed = 1;
  EXPECT_NE(generate_reverse(options).train, fewer.train);
}

TEST(ReverseLanguage, RefusesWhatCannotBe) {
  const auto refused = [](const ReverseOptions& options) {
    return error_of([&] { generate_reverse(options); });
  };
  auto options = few_reversed();
  options.longest = 1, options.symbols = 5;
  EXPECT_THAT(refused(options), HasSubstr("5 symbols and up to 1 words a line give only "));
  options = few_reversed();
  options.shortest = 11;
  EXPECT_THAT(refused(options), HasSubstr("1 <= shortest <= longest <= 10000, got 11 .. 10"));
  options = few_reversed();
  options.symbols = 1;
  EXPECT_EQ(refused(options), "generate_reverse: symbols must be from 2 to 1000000, got 1");
  options = few_reversed();
  options.dev = 0;
  EXPECT_EQ(refused(options), "generate_reverse: dev must be at least 1, got 0");
}

}  // namespace
}  // namespace quatrain::data
