#include "quatrain/data/line_pair_loader.h"

#include <torch/types.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "quatrain/data/line_pair_source.h"
#include "support.h"

namespace quatrain::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Pairs of i % 13 + 1 and i % 7 words: "w0 w1 ..".
class SomePairs final : public LinePairReader {
 public:
  explicit SomePairs(int64_t count, int64_t groups = 0) : count_(count), groups_(groups) {}
  bool next(LinePair& pair) override {
    if (at_ == count_) return false;
    pair.source = words(at_ % 13 + 1);
    pair.target = words(at_ % 7);
    pair.group = groups_ > 0 ? at_ % groups_ : -1;
    ++at_;
    return true;
  }
  std::string place() const override { return "pairs:" + std::to_string(at_); }
  static std::string words(int64_t count) {
    std::string line;
    for (int64_t i = 0; i < count; ++i) line += "w" + std::to_string(i) + " ";
    return line;
  }

 private:
  int64_t count_, groups_, at_ = 0;
};

Pieces numbered_words() {
  PieceOptions options;
  options.kind = PieceKind::words;
  bool given = false;
  return Pieces::train(
      [&](std::string& line) {
        line = SomePairs::words(13);
        return !std::exchange(given, true);
      },
      options);
}

std::shared_ptr<const EncodedLinePairs> some_pairs(int64_t count, const LinePairLimits& limits = {}) {
  SomePairs reader(count);
  const auto pieces = numbered_words();
  return std::make_shared<EncodedLinePairs>(encode(reader, pieces, pieces, limits));
}

std::vector<std::vector<int64_t>> all_batches(LinePairLoader& loader, int64_t epoch) {
  std::vector<std::vector<int64_t>> all;
  for (int64_t i = 0; i < loader.batches(); ++i) all.push_back(loader.batch(epoch, i).indices);
  return all;
}

TEST(LinePairLoader, MarksAndPadsBothSides) {
  const auto batch = collate_line_pairs({{5, 6, 7}, {8}}, {{9}, {10, 11}});
  const auto ids = [](std::initializer_list<std::initializer_list<int64_t>> rows) {
    std::vector<at::Tensor> all;
    for (const auto& row : rows) all.push_back(torch::tensor(std::vector<int64_t>(row)));
    return torch::stack(all);
  };
  EXPECT_TRUE(batch.source.equal(ids({{5, 6, 7, 3}, {8, 3, 0, 0}})));
  EXPECT_TRUE(batch.source_padding.equal(ids({{0, 0, 0, 0}, {0, 0, 1, 1}}).to(torch::kBool)));
  EXPECT_TRUE(batch.target.equal(ids({{2, 9, 0}, {2, 10, 11}})));
  EXPECT_TRUE(batch.following.equal(ids({{9, 3, 0}, {10, 11, 3}})));
  EXPECT_TRUE(batch.target_padding.equal(ids({{0, 0, 1}, {0, 0, 0}}).to(torch::kBool)));
  EXPECT_EQ(batch.tokens, 5);
  EXPECT_THAT(batch.indices, ElementsAre(0, 1));
  const auto moved = batch.to(at::kCPU);
  EXPECT_TRUE(moved.following.equal(batch.following));
  EXPECT_EQ(moved.tokens, 5);

  const auto sources = collate_line_pairs({{}, {5}});
  EXPECT_TRUE(sources.source.equal(ids({{3, 0}, {5, 3}})));
  EXPECT_FALSE(sources.target.defined());
  EXPECT_FALSE(sources.to(at::kCPU).target.defined());
  EXPECT_EQ(sources.tokens, 0);
}

TEST(LinePairLoader, EncodesWithEndsAndLeavesOutWhatIsBeyond) {
  const auto set = some_pairs(26);
  ASSERT_EQ(set->size(), 26);
  EXPECT_EQ(set->left_out.all(), 0);
  EXPECT_TRUE(set->groups.empty());
  EXPECT_THAT(set->source[2], ElementsAre(4, 5, 9, Pieces::kEnd));
  EXPECT_THAT(set->target[2], ElementsAre(4, 5));
  EXPECT_TRUE(set->target[7].empty());

  const auto counted = [](const LinePairLimits& limits) { return some_pairs(91, limits)->left_out; };
  EXPECT_EQ(counted({.max_source = 10}).max_source, 7 * 3);
  EXPECT_EQ(counted({.max_target = 5}).max_target, 13);
  const auto both = counted({.max_source = 10, .max_target = 5});  // a pair counts once
  EXPECT_EQ(both.max_source, 7 * 3);
  EXPECT_EQ(both.max_target, 13 - 3);
  int64_t beyond = 0;
  for (int64_t i = 0; i < 91; ++i) {
    const int64_t source = i % 13 + 1, target = i % 7;
    beyond += 2 * std::max(source, target) > 3 * std::min(source, target);
  }
  EXPECT_EQ(counted({.max_ratio = 1.5}).max_ratio, beyond);

  SomePairs grouped(5, 3);
  const auto pieces = numbered_words();
  EXPECT_THAT(encode(grouped, pieces, pieces, {.max_source = 4}).groups, ElementsAre(0, 1, 2, 0));
}

TEST(LinePairLoader, EveryPairComesOnceAnEpochWithItsOwnSides) {
  const auto set = some_pairs(103);
  for (const bool shuffle : {true, false}) {
    LinePairLoader loader(set, {.batch_size = 8, .batch_tokens = 60, .shuffle = shuffle, .seed = 3});
    EXPECT_EQ(loader.examples(), 103);
    std::vector<int64_t> seen;
    for (int64_t i = 0; i < loader.batches(); ++i) {
      const auto batch = loader.batch(0, i);
      EXPECT_LE(batch.size(), 8);
      EXPECT_LE(batch.size() * std::max(batch.source.size(1), batch.target.size(1)), 60);
      int64_t tokens = 0;
      for (int64_t row = 0; row < batch.size(); ++row) {
        const int64_t index = batch.indices[static_cast<size_t>(row)];
        seen.push_back(index);
        const auto ids = collate_line_pairs({{set->source[index].begin(), set->source[index].end() - 1}},
                                            {{set->target[index].begin(), set->target[index].end()}});
        const auto kept = [&](const at::Tensor& part, const at::Tensor& padding) {
          return part[row].index({~padding[row]});
        };
        EXPECT_TRUE(kept(batch.source, batch.source_padding).equal(ids.source[0]));
        EXPECT_TRUE(kept(batch.target, batch.target_padding).equal(ids.target[0]));
        EXPECT_TRUE(kept(batch.following, batch.target_padding).equal(ids.following[0]));
        tokens += ids.tokens;
      }
      EXPECT_EQ(batch.tokens, tokens);
    }
    std::sort(seen.begin(), seen.end());
    std::vector<int64_t> expected(103);
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(seen, expected);
  }
}

TEST(LinePairLoader, BatchesAreFixedAndTheirOrderIsTheEpochs) {
  const auto set = some_pairs(400);
  LinePairLoader one(set, {.batch_tokens = 70, .seed = 5}), other(set, {.batch_tokens = 70, .seed = 5});
  const auto third = all_batches(one, 3), fourth = all_batches(one, 4);
  EXPECT_EQ(one.batches(), static_cast<int64_t>(third.size()));
  EXPECT_NE(third, fourth);
  using Set = std::set<std::vector<int64_t>>;
  EXPECT_EQ(Set(third.begin(), third.end()), Set(fourth.begin(), fourth.end()));
  // A resumed run asks in the middle of an epoch for what it has not seen, whatever was asked before.
  EXPECT_EQ(other.batch(3, 7).indices, third[7]);
  EXPECT_EQ(all_batches(other, 3), third);
  LinePairLoader seeded(set, {.batch_tokens = 70, .seed = 6});
  const auto differently = all_batches(seeded, 3);
  EXPECT_NE(Set(third.begin(), third.end()), Set(differently.begin(), differently.end()));
}

TEST(LinePairLoader, PairsOfABatchAreAlikeInLength) {
  const auto set = some_pairs(1300);
  LinePairLoader loader(set, {.batch_tokens = 200});
  int64_t padded = 0, cells = 0;
  for (int64_t i = 0; i < loader.batches(); ++i) {
    const auto batch = loader.batch(0, i);
    padded += batch.source_padding.sum().item<int64_t>();
    cells += batch.source_padding.numel();
  }
  EXPECT_LT(static_cast<double>(padded), 0.1 * static_cast<double>(cells));
  // Batches of 200 tokens hold as many pairs as fit.
  EXPECT_LT(cells + 200, loader.batches() * 200 + 200);
  EXPECT_GT(cells, loader.batches() * 170);
}

TEST(LinePairLoader, EvaluationGoesByLengthLongestFirst) {
  const auto set = some_pairs(100);
  LinePairLoader loader(set, {.batch_size = 16, .shuffle = false});
  const auto all = all_batches(loader, 0);
  EXPECT_EQ(all_batches(loader, 1), all);
  EXPECT_EQ(loader.batches(), 7);
  int64_t before = 1000;
  for (const auto& batch : all)
    for (const int64_t i : batch) {
      const int64_t longest = std::max(set->source.length(i), set->target.length(i) + 1);
      EXPECT_LE(longest, before);
      before = longest;
    }
}

TEST(LinePairLoader, APairBeyondTheTokensIsABatchOfItsOwn) {
  LinePairLoader loader(some_pairs(13), {.batch_tokens = 10, .shuffle = false});
  EXPECT_EQ(loader.batch(0, 0).size(), 1);
  EXPECT_EQ(loader.batch(0, 0).source.size(1), 14);
}

TEST(LinePairLoader, RefusesWhatCannotBe) {
  EXPECT_THAT(error_of([] { LinePairLoader(some_pairs(3), {}); }),
              HasSubstr("batch_size or batch_tokens must be positive"));
  EXPECT_THAT(error_of([] { LinePairLoader(nullptr, {.batch_size = 1}); }),
              HasSubstr("at least one pair, got none"));
  LinePairLoader loader(some_pairs(3), {.batch_size = 2});
  EXPECT_EQ(error_of([&] { loader.batch(0, 2); }), "LengthBatches::batch: index must be from 0 to 1, got 2");
  EXPECT_EQ(error_of([&] { loader.batch(-1, 0); }),
            "LengthBatches::batch: epoch must not be negative, got -1");
  EXPECT_THAT(error_of([] { some_pairs(5, {.max_target = -1}); }),
              HasSubstr("or 0 for no limit, got 0 and -1"));
  EXPECT_THAT(error_of([] { some_pairs(5, {.max_ratio = 0.5}); }), HasSubstr("max_ratio must be at least 1"));
  EXPECT_THAT(
      error_of([] { some_pairs(1, {.max_ratio = 1}); }),
      HasSubstr("no pair is left; beyond max_source are 0, beyond max_target 0 and beyond max_ratio 1"));
  EXPECT_THAT(error_of([] {
                collate_line_pairs({{5}, {6}}, {{5}});
              }),
              HasSubstr("as many targets as sources"));
}

}  // namespace
}  // namespace quatrain::data
