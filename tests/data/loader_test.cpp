#include "quatrain/data/loader.h"

#include <torch/types.h>

#include <algorithm>
#include <set>

#include "support.h"

namespace quatrain::data {
namespace {

/// Texts "w0", "w0 w1", ..: example i has 1 + (7 i mod 13) words, label i mod 2, group i mod 3.
std::vector<Example> texts(int64_t count) {
  std::vector<Example> all;
  for (int64_t i = 0; i < count; ++i) {
    std::string text;
    for (int64_t word = 0; word <= 7 * i % 13; ++word) text += "w" + std::to_string(word) + " ";
    all.push_back({text, i % 2, i % 3});
  }
  return all;
}

Encoded encoded(int64_t count, int64_t max_length = 0) {
  const auto examples = texts(count);
  return encode(examples, Tokenizer::whitespace, Vocabulary::build(examples, Tokenizer::whitespace),
                max_length);
}

std::vector<int64_t> order(Loader& loader, int64_t epoch) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < loader.batches(); ++i) {
    const auto batch = loader.batch(epoch, i);
    all.insert(all.end(), batch.indices.begin(), batch.indices.end());
  }
  return all;
}

TEST(Loader, PadsAndMarksThePadding) {
  const auto batch = collate({{2, 3, 4}, {5}});
  EXPECT_TRUE(batch.tokens.equal(torch::tensor({{2, 3, 4}, {5, 0, 0}}, torch::kInt64)));
  EXPECT_TRUE(batch.padding.equal(torch::tensor({{0, 0, 0}, {0, 1, 1}}).to(torch::kBool)));
  EXPECT_TRUE(batch.labels.equal(torch::tensor({-1, -1}, torch::kInt64)));
  EXPECT_EQ(batch.indices, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(batch.size(), 2);
}

TEST(Loader, EveryExampleComesOnceAnEpochWithItsOwnTextLabelAndGroup) {
  for (const bool shuffle : {true, false}) {
    auto set = encoded(103);
    const auto copy = set;
    Loader loader(std::move(set), {.batch_size = 8, .shuffle = shuffle, .bucket = 3});
    EXPECT_EQ(loader.batches(), 13);
    EXPECT_EQ(loader.examples(), 103);
    std::vector<int64_t> seen;
    for (int64_t i = 0; i < loader.batches(); ++i) {
      const auto batch = loader.batch(0, i);
      ASSERT_EQ(batch.tokens.size(0), batch.size());
      for (int64_t row = 0; row < batch.size(); ++row) {
        const int64_t index = batch.indices[static_cast<size_t>(row)], length = 1 + 7 * index % 13;
        seen.push_back(index);
        EXPECT_EQ(batch.labels[row].item<int64_t>(), index % 2);
        EXPECT_EQ(batch.groups[row].item<int64_t>(), index % 3);
        EXPECT_EQ((~batch.padding[row]).sum().item<int64_t>(), length);
        for (int64_t at = 0; at < length; ++at) {
          EXPECT_EQ(batch.tokens[row][at].item<int64_t>(),
                    copy.ids[static_cast<size_t>(copy.offsets[static_cast<size_t>(index)] + at)]);
        }
      }
    }
    std::sort(seen.begin(), seen.end());
    for (int64_t i = 0; i < 103; ++i) ASSERT_EQ(seen[static_cast<size_t>(i)], i);
  }
}

TEST(Loader, IsAFunctionOfSeedEpochAndIndex) {
  Loader one(encoded(200), {.batch_size = 16, .seed = 5}), other(encoded(200), {.batch_size = 16, .seed = 5});
  const auto third = order(one, 3);
  // A resumed run asks in the middle of an epoch for what it has not seen, whatever was asked before.
  EXPECT_EQ(other.batch(3, 7).indices, one.batch(3, 7).indices);
  EXPECT_EQ(order(other, 3), third);
  EXPECT_NE(order(one, 4), third);
  EXPECT_EQ(order(one, 3), third);
  Loader seeded(encoded(200), {.batch_size = 16, .seed = 6});
  EXPECT_NE(order(seeded, 3), third);
}

TEST(Loader, EpochsMixDifferentExamplesInABatch) {
  Loader loader(encoded(200), {.batch_size = 16});
  const auto batches = [&](int64_t epoch) {
    std::set<std::set<int64_t>> all;
    for (int64_t i = 0; i < loader.batches(); ++i) {
      const auto indices = loader.batch(epoch, i).indices;
      all.emplace(indices.begin(), indices.end());
    }
    return all;
  };
  EXPECT_NE(batches(0), batches(1));
}

TEST(Loader, EvaluationGoesByLengthAndTheSameEachEpoch) {
  Loader loader(encoded(100), {.batch_size = 16, .shuffle = false});
  const auto all = order(loader, 0);
  for (size_t i = 1; i < all.size(); ++i) {
    const auto before = std::pair(7 * all[i - 1] % 13, all[i - 1]), here = std::pair(7 * all[i] % 13, all[i]);
    EXPECT_LT(before, here);
  }
  EXPECT_EQ(order(loader, 1), all);
}

TEST(Loader, BucketsKeepPaddingSmall) {
  Loader loader(encoded(1300), {.batch_size = 10, .bucket = 13});
  int64_t padded = 0, cells = 0;
  for (int64_t i = 0; i < loader.batches(); ++i) {
    const auto batch = loader.batch(0, i);
    padded += batch.padding.sum().item<int64_t>();
    cells += batch.padding.numel();
  }
  EXPECT_LT(static_cast<double>(padded), 0.1 * static_cast<double>(cells));
}

TEST(Loader, CutsLongTextsAtTheirEnd) {
  const auto whole = encoded(13), cut = encoded(13, 4);
  for (int64_t i = 0; i < 13; ++i) {
    ASSERT_EQ(cut.length(i), std::min<int64_t>(whole.length(i), 4));
    for (int64_t at = 0; at < cut.length(i); ++at) {
      EXPECT_EQ(cut.ids[static_cast<size_t>(cut.offsets[static_cast<size_t>(i)] + at)],
                whole.ids[static_cast<size_t>(whole.offsets[static_cast<size_t>(i)] + at)]);
    }
  }
}

TEST(Loader, ABatchSizeAboveAllMakesOneBatch) {
  Loader loader(encoded(5), {.batch_size = int64_t{1} << 40, .bucket = int64_t{1} << 40});
  EXPECT_EQ(loader.batches(), 1);
  EXPECT_EQ(loader.batch(0, 0).size(), 5);
}

TEST(Loader, RefusesWhatCannotBe) {
  EXPECT_EQ(error_of([] { Loader({}, {}); }), "Loader: the set must hold at least one example, got none");
  EXPECT_EQ(error_of([] { Loader(encoded(3), {.batch_size = 0}); }),
            "Loader: batch_size must be at least 1, got 0");
  EXPECT_EQ(error_of([] { Loader(encoded(3)).batch(0, 1); }),
            "Loader::batch: index must be from 0 to 0, got 1");
  EXPECT_EQ(error_of([] { Loader(encoded(3)).batch(-1, 0); }),
            "Loader::batch: epoch must not be negative, got -1");
  EXPECT_EQ(error_of([] { encoded(3, -1); }),
            "encode: max_length must be positive, or 0 for no limit, got -1");
  EXPECT_THAT(error_of([] { collate({{2}, {}}); }), testing::HasSubstr("text 1 has none"));
}

}  // namespace
}  // namespace quatrain::data
