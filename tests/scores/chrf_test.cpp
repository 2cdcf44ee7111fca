#include "quatrain/scores/chrf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace quatrain::scores {
namespace {

using CharacterOrders = std::array<int64_t, 6>;

TEST(Chrf, counts_by_hand) {
  const auto counts = chrf_counts("ab ab", "abba b");  // "abab" and "abbab"
  EXPECT_EQ(counts.hypothesis, (CharacterOrders{4, 3, 2, 1, 0, 0}));
  EXPECT_EQ(counts.reference, (CharacterOrders{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(counts.matched, (CharacterOrders{4, 3, 1, 0, 0, 0}));  // of three: "bab"
  const double precision = (1 + 1 + 0.5 + 0) / 4, recall = (4 / 5.0 + 3 / 4.0 + 1 / 3.0 + 0) / 4;
  EXPECT_NEAR(chrf(counts), 100 * 5 * precision * recall / (4 * precision + recall), 1e-9);
}

TEST(Chrf, counts_add_up) {
  auto sum = chrf_counts("abcdef", "abcdef");
  EXPECT_NEAR(chrf(sum), 100, 1e-9);
  sum += chrf_counts("uvwxyz", "abcdef");
  EXPECT_NEAR(chrf(sum), 50, 1e-9);
  EXPECT_EQ(sum.reference, (CharacterOrders{12, 10, 8, 6, 4, 2}));
}

TEST(Chrf, of_little_is_nothing) {
  for (const auto& [hypothesis, reference] : {std::pair{"", "a"}, {"a", ""}, {"", ""}, {"abc", "xyz"}})
    EXPECT_EQ(chrf(chrf_counts(hypothesis, reference)), 0) << hypothesis << " | " << reference;
  EXPECT_EQ(chrf({}), 0);
  // Of a word that is shorter than the order, the longer n-grams of the other side do not count.
  EXPECT_EQ(chrf_counts("abc", "a").hypothesis, (CharacterOrders{3, 0, 0, 0, 0, 0}));
  EXPECT_NEAR(chrf(chrf_counts("word", "word")), 100, 1e-9);
}

TEST(Chrf, the_closest_of_several_references_counts) {
  const std::vector<std::string_view> references{"xyz", "abd", "abc"};
  EXPECT_EQ(chrf_counts("abc", references), chrf_counts("abc", "abc"));
  EXPECT_THROW(chrf_counts("abc", std::vector<std::string_view>{}), std::invalid_argument);
}

TEST(Chrf, characters_are_unicodes) {
  const auto counts = chrf_counts("\xC3\xBC\xC2\xA0\xF0\x9F\x98\x80", "\xC3\xBC\xF0\x9F\x98\x80");
  EXPECT_EQ(counts.matched, (CharacterOrders{2, 1, 0, 0, 0, 0}));
  EXPECT_THAT([] { chrf_counts("x", "\xFF"); },
              testing::ThrowsMessage<std::invalid_argument>(testing::StartsWith("chrf: the reference: ")));
  EXPECT_THAT(chrf_signature(),
              testing::StartsWith("nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:quatrain-"));
}

}  // namespace
}  // namespace quatrain::scores
