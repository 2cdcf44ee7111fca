#include "data/ibm_model1.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

namespace quatrain::data {
namespace {

constexpr int32_t kWords = 200, kMarks = 4;

// Every word has one translation; a target's words stand in another order, and some belong to none.
int32_t translation_of(int32_t word) {
  return kMarks + (word - kMarks + 71) % kWords;
}

EncodedLinePairs word_for_word(int64_t count) {
  std::mt19937 draw(7);
  EncodedLinePairs pairs;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int32_t> source, target;
    for (uint32_t j = 0; j < 2 + draw() % 6; ++j) {
      source.push_back(kMarks + static_cast<int32_t>(draw() % kWords));
      target.insert(target.begin(), translation_of(source.back()));
    }
    target.push_back(translation_of(kMarks));  // a common word in every target
    source.push_back(Pieces::kEnd);
    pairs.source.append(source);
    pairs.target.append(target);
  }
  pairs.source.finish();
  pairs.target.finish();
  return pairs;
}

TEST(IbmModel1, FindsADictionary) {
  const auto pairs = word_for_word(4000);
  Model1Options options;
  options.best = 1;
  const auto best = likely_targets(pairs, kMarks + kWords, kMarks + kWords, options);
  ASSERT_EQ(best.size(), static_cast<size_t>(kMarks + kWords));
  for (int32_t word = kMarks; word < kMarks + kWords; ++word)
    EXPECT_THAT(best[static_cast<size_t>(word)], testing::ElementsAre(translation_of(word))) << word;
  EXPECT_THAT(best[Pieces::kEnd], testing::ElementsAre(translation_of(kMarks)));
  EXPECT_THAT(best[Pieces::kUnknown], testing::IsEmpty());  // which occurs nowhere
  // Without iterations of EM the commonest word is everywhere.
  options.iterations = 1;
  const auto counted = likely_targets(pairs, kMarks + kWords, kMarks + kWords, options);
  EXPECT_THAT(counted[kMarks + 9], testing::ElementsAre(translation_of(kMarks)));
}

// The same by maps, in double precision and without pruning.
TEST(IbmModel1, EqualsAPlainLoop) {
  const auto pairs = word_for_word(60);
  std::map<std::pair<int32_t, int32_t>, double> t;
  for (int iteration = 0; iteration < 5; ++iteration) {
    std::map<std::pair<int32_t, int32_t>, double> counts;
    std::map<int32_t, double> sums;
    for (int64_t i = 0; i < pairs.size(); ++i)
      for (const int32_t target : pairs.target[i]) {
        double all = 0;
        for (const int32_t source : pairs.source[i]) all += iteration == 0 ? 1 : t[{source, target}];
        for (const int32_t source : pairs.source[i]) {
          const double share = (iteration == 0 ? 1 : t[{source, target}]) / all;
          counts[{source, target}] += share;
          sums[source] += share;
        }
      }
    for (auto& [words, count] : counts) t[words] = count / sums[words.first];
  }
  Model1Options options;
  options.best = 5;
  const auto found = likely_targets(pairs, kMarks + kWords, kMarks + kWords, options);
  for (int32_t source = 0; source < kMarks + kWords; ++source) {
    double before = 1;
    for (const int64_t target : found[static_cast<size_t>(source)]) {
      const double probability = t[{source, static_cast<int32_t>(target)}];
      EXPECT_LE(probability, before + 1e-5);
      before = probability;
    }
    for (const auto& [words, probability] : t) {
      if (words.first != source || probability <= before + 1e-5) continue;
      EXPECT_THAT(found[static_cast<size_t>(source)], testing::Contains(words.second)) << probability;
    }
  }
}

TEST(IbmModel1, KeepsWhatOccursMostAndCanBeStopped) {
  const auto pairs = word_for_word(4000);
  Model1Options options;
  options.best = 3;
  options.candidates = 8;
  std::vector<int64_t> told;
  options.tell = [&](int64_t iteration) { told.push_back(iteration); };
  const auto best = likely_targets(pairs, kMarks + kWords, kMarks + kWords, options);
  EXPECT_THAT(told, testing::ElementsAre(1, 2, 3, 4, 5));
  for (int32_t word = kMarks; word < kMarks + kWords; ++word) {
    EXPECT_LE(best[static_cast<size_t>(word)].size(), 3U);
    EXPECT_EQ(best[static_cast<size_t>(word)].at(0), translation_of(word));
  }
  options.after_pairs = [] { throw std::runtime_error("stopped"); };
  EXPECT_THROW(likely_targets(pairs, kMarks + kWords, kMarks + kWords, options), std::runtime_error);
  for (int64_t Model1Options::*value :
       {&Model1Options::best, &Model1Options::iterations, &Model1Options::candidates}) {
    Model1Options none;
    none.*value = 0;
    EXPECT_THROW(likely_targets(pairs, kMarks + kWords, kMarks + kWords, none), c10::Error);
  }
}

}  // namespace
}  // namespace quatrain::data
