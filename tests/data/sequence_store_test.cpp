#include "quatrain/data/sequence_store.h"

#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <numeric>
#include <vector>

#include "support.h"

namespace quatrain::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SequenceStoreTest : public DataTest {
 protected:
  SequenceStoreTest() { setenv("TMPDIR", folder_.c_str(), 1); }
  ~SequenceStoreTest() override { unsetenv("TMPDIR"); }
};

TEST_F(SequenceStoreTest, HoldsSequencesOfAnyLength) {
  TokenStore store;
  std::vector<int32_t> long_one(200000);
  std::iota(long_one.begin(), long_one.end(), 7);
  store.append(std::vector<int32_t>{1, 2, 3});
  store.append({});
  store.append(long_one);
  store.append(std::vector<int32_t>{9});
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 0);  // it has no name
  store.finish();
  const TokenStore moved = std::move(store);
  ASSERT_EQ(moved.size(), 4);
  EXPECT_EQ(moved.numbers(), 200004);
  EXPECT_THAT(moved[0], ElementsAre(1, 2, 3));
  EXPECT_EQ(moved.length(1), 0);
  EXPECT_TRUE(moved[1].empty());
  EXPECT_TRUE(std::equal(moved[2].begin(), moved[2].end(), long_one.begin(), long_one.end()));
  EXPECT_THAT(moved[3], ElementsAre(9));
  EXPECT_EQ(store.size(), 0);  // NOLINT: what is left of it holds nothing
}

TEST_F(SequenceStoreTest, ASequenceGrowsPieceByPiece) {
  TokenStore store;
  store.extend(std::vector<int32_t>{1, 2});
  store.extend({});
  store.extend(std::vector<int32_t>{3});
  store.append(std::vector<int32_t>{4});
  store.extend(std::vector<int32_t>{5});
  store.finish();
  ASSERT_EQ(store.size(), 2);
  EXPECT_THAT(store[0], ElementsAre(1, 2, 3));
  EXPECT_THAT(store[1], ElementsAre(4, 5));
}

TEST_F(SequenceStoreTest, AnEmptyStoreIsOneToo) {
  TokenStore store;
  store.finish();
  EXPECT_EQ(store.size(), 0);
  EXPECT_EQ(store.numbers(), 0);
}

TEST_F(SequenceStoreTest, RefusesWhatCannotBe) {
  TokenStore store;
  store.append(std::vector<int32_t>{1});
  EXPECT_EQ(error_of([&] { store[0]; }), "SequenceStore: sequences can be read after finish()");
  store.finish();
  EXPECT_EQ(error_of([&] { store.append({}); }), "SequenceStore: a finished store takes no more numbers");
  EXPECT_EQ(error_of([&] { store.finish(); }), "SequenceStore: a finished store takes no more numbers");
  EXPECT_EQ(error_of([&] { store[1]; }), "SequenceStore: the sequence must be from 0 to 0, got 1");
  EXPECT_THAT(store[0], ElementsAre(1));
  setenv("TMPDIR", (folder_ / "none").c_str(), 1);
  EXPECT_THAT(error_of([] { TokenStore(); }), HasSubstr("name another folder with TMPDIR"));
}

TEST_F(SequenceStoreTest, AFullDiskIsAnError) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::vector<int32_t> many(1 << 19);
  const auto error = error_of([&] {
    TokenStore store;
    store.append(many);
    store.finish();
  });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(error, HasSubstr("bytes to " + folder_.string() + " failed: "));
}

}  // namespace
}  // namespace quatrain::data
