#include "quatrain/data/window_loader.h"

#include <torch/types.h>

#include <numeric>
#include <set>

#include "support.h"

namespace quatrain::data {
namespace {

using testing::HasSubstr;

std::shared_ptr<const TokenStore> counted_text(int32_t count) {
  TokenStore store;
  std::vector<int32_t> ids(static_cast<size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  store.append(ids);
  store.finish();
  return std::make_shared<TokenStore>(std::move(store));
}

TEST(WindowLoader, GoesDownTheColumns) {
  const WindowLoader loader(counted_text(24), 2, 4);  // columns of 11 tokens, one token left out
  EXPECT_EQ(loader.batches(), 3);
  EXPECT_EQ(loader.tokens(), 22);
  EXPECT_EQ(loader.left_out(), 1);
  const auto first = loader.batch(0, 0), last = loader.batch(0, 2);
  EXPECT_TRUE(first.tokens.equal(torch::tensor({{0, 1, 2, 3}, {11, 12, 13, 14}}, torch::kInt64)));
  EXPECT_TRUE(first.following.equal(first.tokens + 1));
  EXPECT_TRUE(last.tokens.equal(torch::tensor({{8, 9, 10}, {19, 20, 21}}, torch::kInt64)));
  EXPECT_TRUE(last.following.equal(last.tokens + 1));
  EXPECT_TRUE(loader.batch(7, 2).tokens.equal(last.tokens));
  EXPECT_TRUE(last.to(at::kCPU).following.equal(last.following));
}

TEST(WindowLoader, PredictsEveryTokenButTheFirstOnce) {
  for (const int64_t length : {1, 4, 22, 100}) {
    const WindowLoader loader(counted_text(45), 2, length);
    std::multiset<int64_t> predicted;
    for (int64_t i = 0; i < loader.batches(); ++i) {
      const auto following = loader.batch(0, i).following.flatten();
      for (int64_t at = 0; at < following.size(0); ++at) predicted.insert(following[at].item<int64_t>());
    }
    EXPECT_EQ(predicted.size(), 44u);
    EXPECT_EQ(static_cast<int64_t>(predicted.size()), loader.tokens());
    EXPECT_EQ(std::set<int64_t>(predicted.begin(), predicted.end()).size(), 44u);
    EXPECT_EQ(*predicted.begin(), 1);
  }
}

TEST(WindowLoader, RefusesWhatCannotBe) {
  EXPECT_THAT(error_of([] { WindowLoader(counted_text(5), 0, 3); }),
              HasSubstr("batch_size must be at least 1"));
  EXPECT_THAT(error_of([] { WindowLoader(counted_text(5), 1, 0); }),
              HasSubstr("length must be at least 1, got 0"));
  EXPECT_THAT(error_of([] { WindowLoader(counted_text(5), 5, 3); }),
              HasSubstr("got 5 for batch_size = 5; make the batch smaller"));
  EXPECT_THAT(error_of([] { WindowLoader(nullptr, 5, 3); }), HasSubstr("must have a sequence, got none"));
  const WindowLoader loader(counted_text(5), 1, 3);
  EXPECT_EQ(error_of([&] { loader.batch(0, 2); }), "WindowLoader::batch: index must be from 0 to 1, got 2");
  EXPECT_EQ(error_of([&] { loader.batch(-1, 0); }),
            "WindowLoader::batch: epoch must not be negative, got -1");
}

}  // namespace
}  // namespace quatrain::data
