#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/kernels.h"

namespace quatrain::kernels::cpu {
namespace {

TEST(ExpSum, IsThatOfARowAndFindsTheHighestOfEachBlock) {
  for (const Table* const* k = available(); *k; ++k)
    for (const int64_t cols : {int64_t{1}, int64_t{15}, kTopBlock, kTopBlock + 1, 3 * kTopBlock + 37}) {
      SCOPED_TRACE(std::string((*k)->name) + ", " + std::to_string(cols));
      std::vector<float> row(static_cast<size_t>(cols));
      for (size_t j = 0; j < row.size(); ++j) row[j] = static_cast<float>(50 * std::sin(1.7 * double(j) + 1));
      std::vector<float> tops(static_cast<size_t>((cols + kTopBlock - 1) / kTopBlock));
      const float sum = (*k)->exp_sum(row.data(), cols, tops.data());
      const double top = *std::max_element(row.begin(), row.end());
      double expected = 0;
      for (const float value : row) expected += std::exp(value - top);
      ASSERT_NEAR(sum, expected, 1e-5 * expected);
      for (size_t b = 0; b < tops.size(); ++b) {
        const float* const first = row.data() + static_cast<int64_t>(b) * kTopBlock;
        ASSERT_EQ(tops[b],
                  *std::max_element(first, std::min<const float*>(first + kTopBlock, row.data() + cols)));
      }
      for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
        row.back() = bad;
        ASSERT_FALSE(std::isfinite((*k)->exp_sum(row.data(), cols, tops.data())));
      }
    }
}

}  // namespace
}  // namespace quatrain::kernels::cpu
