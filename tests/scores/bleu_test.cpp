#include "quatrain/scores/bleu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace quatrain::scores {
namespace {

using Orders = std::array<int64_t, 4>;
constexpr auto kNone = BleuTokenizer::none;

TEST(Bleu, counts_by_hand) {
  // "the" stands three times, and twice in the reference; "the cat" once in both.
  const auto counts = bleu_counts("the the the cat", "the cat sat on the mat", kNone);
  EXPECT_EQ(counts.matched, (Orders{3, 1, 0, 0}));
  EXPECT_EQ(counts.total, (Orders{4, 3, 2, 1}));
  EXPECT_EQ(counts.hypothesis_length, 4);
  EXPECT_EQ(counts.reference_length, 6);
  EXPECT_DOUBLE_EQ(brevity_penalty(counts), std::exp(1 - 6.0 / 4));
  // Orders without a match get a half and a quarter of one.
  EXPECT_THAT(bleu_precisions(counts),
              testing::ElementsAre(testing::DoubleEq(75), testing::DoubleEq(100 / 3.0),
                                   testing::DoubleEq(100 / (2.0 * 2)), testing::DoubleEq(100 / (4.0 * 1))));
  EXPECT_NEAR(bleu(counts), std::exp(-0.5) * std::pow(75 * (100 / 3.0) * 25 * 25, 0.25), 1e-9);
}

TEST(Bleu, several_references_are_one_with_all_they_have) {
  // "the" twice as in the first, "cat sat" as in the second; 3 and 5 words are as close to 4, and the shorter
  // counts.
  const std::vector<std::string_view> references{"the the mat on it", "a cat sat"};
  const auto counts = bleu_counts("the the cat sat", references, kNone);
  EXPECT_EQ(counts.matched, (Orders{4, 2, 0, 0}));
  EXPECT_EQ(counts.reference_length, 3);
  EXPECT_EQ(bleu_counts("a b", std::vector<std::string_view>{"a b c", "a b c"}, kNone),
            bleu_counts("a b", "a b c", kNone));
  EXPECT_THROW(bleu_counts("a", std::vector<std::string_view>{}, kNone), std::invalid_argument);
}

TEST(Bleu, counts_add_up) {
  auto sum = bleu_counts("a b c d e", "a b c d e", kNone);
  EXPECT_NEAR(bleu(sum), 100, 1e-9);
  sum += bleu_counts("x y z w v", "a b c d e", kNone);
  EXPECT_EQ(sum.matched, (Orders{5, 4, 3, 2}));
  EXPECT_EQ(sum.total, (Orders{10, 8, 6, 4}));
  EXPECT_NEAR(bleu(sum), 50, 1e-9);
  sum += {};
  EXPECT_EQ(sum.hypothesis_length, 10);
}

TEST(Bleu, of_little_is_nothing) {
  for (const auto& [hypothesis, reference] :
       {std::pair{"", "a word"}, {"a word", ""}, {"", ""}, {"one two three four", "five six seven eight"}})
    EXPECT_EQ(bleu(bleu_counts(hypothesis, reference)), 0) << hypothesis << " | " << reference;
  EXPECT_EQ(bleu(bleu_counts("word", "word")), 0);  // there is no pair of words
  EXPECT_EQ(bleu({}), 0);
  EXPECT_EQ(bleu_counts("word", "word").matched, (Orders{1, 0, 0, 0}));
}

// Words that the rules 13a make: the same as those of a line in which they stand apart.
void expect_words(const std::string& line, const std::string& apart) {
  const auto counts = bleu_counts(line, line);
  BleuCounts expected = bleu_counts(apart, apart, kNone);
  EXPECT_EQ(counts, expected) << line;
  // Equal as text too: 13a leaves what stands apart as it is, up to marks beside digits.
  EXPECT_EQ(bleu_counts(line, apart).matched[0], expected.matched[0]) << line;
}

TEST(Bleu, rules_13a) {
  expect_words("Hello, world!", "Hello , world !");
  expect_words("It's 3.14, or 1,000.", "It's 3.14 , or 1,000 .");
  expect_words("well-known 1990-2000", "well-known 1990 - 2000");
  expect_words("(a/b) [c] {d} \"e\" <f>", "( a / b ) [ c ] { d } \" e \" < f >");
  expect_words("&quot;x&quot; &amp;y", "\" x \" & y");
  expect_words("a<skipped>b", "ab");
  expect_words("a...b", "a . . . b");
  expect_words(
      "caf\xC3\xA9.\xC3\x9C"
      "ber",
      "caf\xC3\xA9 . \xC3\x9C"
      "ber");
}

TEST(Bleu, white_space_is_unicodes) {
  // No-break, em, ideographic space, a line separator, and a control character that Python takes for space.
  const auto counts = bleu_counts(
      "a\xC2\xA0"
      "b\xE2\x80\x83"
      "c\xE3\x80\x80"
      "d\xE2\x80\xA8"
      "e\x1F"
      "f",
      "a b c d e f", kNone);
  EXPECT_EQ(counts.matched, (Orders{6, 5, 4, 3}));
  EXPECT_EQ(bleu_counts("a\xE2\x80\x8B"
                        "b",
                        "x", kNone)
                .hypothesis_length,
            1);  // a zero-width space is none
}

TEST(Bleu, characters_as_words) {
  const auto counts =
      bleu_counts("\xE6\x97\xA5 \xE6\x9C\xAC", "\xE6\x97\xA5\xE6\x9C\xAC", BleuTokenizer::character);
  EXPECT_EQ(counts.matched, (Orders{2, 1, 0, 0}));
}

TEST(Bleu, other_bytes_than_utf8_are_refused) {
  EXPECT_THAT([] { bleu_counts("caf\xE9", "x"); },
              testing::ThrowsMessage<std::invalid_argument>(
                  testing::StartsWith("bleu: the hypothesis: the text must be UTF-8")));
  EXPECT_THROW(bleu_counts("x", "\xFF", kNone), std::invalid_argument);
}

TEST(Bleu, names_and_signature) {
  for (const auto tokenizer : {BleuTokenizer::v13a, BleuTokenizer::none, BleuTokenizer::character})
    EXPECT_EQ(parse_bleu_tokenizer(name(tokenizer)), tokenizer);
  EXPECT_THAT([] { parse_bleu_tokenizer("intl"); },
              testing::ThrowsMessage<std::invalid_argument>(
                  "bleu: the tokenizer must be one of 13a, none, char; got 'intl'"));
  EXPECT_THAT(bleu_signature(kNone),
              testing::StartsWith("nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:quatrain-"));
}

}  // namespace
}  // namespace quatrain::scores
