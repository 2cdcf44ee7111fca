// The latest rows of a stream: those that were appended and not forgotten, in memory that is used again.

#include "quatrain/data/recent_rows.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <algorithm>

namespace quatrain::data {
namespace {

at::Tensor numbered(int64_t from, int64_t to) {
  const at::Tensor first = torch::arange(from, to, torch::kFloat);
  return torch::stack({first, -first, first * 10}, 1);
}

TEST(RecentRows, HoldWhatWasAppendedAndNotForgotten) {
  RecentRows rows(3);
  int64_t begin = 0, end = 0;
  for (const auto& [appended, forgotten] :
       {std::pair{5, 2}, {0, 0}, {1, 4}, {40, 1}, {3, 39}, {7, 100}, {2, 0}, {100, 30}}) {
    rows.append(numbered(end, end + appended));
    end += appended;
    ASSERT_TRUE(torch::equal(rows.kept(), numbered(begin, end)));
    rows.forget_before(begin + forgotten);
    begin = std::min(begin + forgotten, end);  // those that never came are not forgotten
    ASSERT_EQ(rows.begin(), begin);
    ASSERT_EQ(rows.end(), end);
    ASSERT_TRUE(torch::equal(rows.kept(), numbered(begin, end)));
  }
  rows.forget_before(begin - 1);  // gone already
  EXPECT_EQ(rows.begin(), begin);
}

TEST(RecentRows, UseTheirMemoryAgain) {
  RecentRows rows(3);
  rows.append(numbered(0, 50));
  const void* const memory = rows.kept().data_ptr();
  for (int64_t i = 50; i < 5000; i += 10) {
    rows.forget_before(i - 40);
    rows.append(numbered(i, i + 10));
    ASSERT_EQ(rows.kept().data_ptr(), memory);
  }
  EXPECT_TRUE(torch::equal(rows.kept(), numbered(4950, 5000)));
}

TEST(RecentRows, MayBeSingleValues) {
  RecentRows samples;
  samples.append(torch::arange(4));  // becomes float32
  samples.forget_before(1);
  EXPECT_TRUE(torch::equal(samples.kept(), torch::tensor({1.F, 2.F, 3.F})));
}

}  // namespace
}  // namespace quatrain::data
