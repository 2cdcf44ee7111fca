// Products of a few rows, in every table: values against double precision, the same bits however many rows
// there are, and no byte beside the operands.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "kernels/matrices.h"
#include "kernels/tables.h"

namespace quatrain::kernels::cpu {
namespace {

using test::Matrices;

void check_product(const Table& k, int64_t links, int64_t rows, int64_t cols, int64_t depth) {
  const auto count = static_cast<int32_t>(links);
  Matrices<float> x(count, rows, depth, 3), w(count, depth, cols, 2), y(1, rows, cols, 1);
  x.fill(1);
  w.fill(2);
  const Links all{x.inputs(), w.inputs(), links};
  k.products(&all, 1, x.row(), rows, w.row(), depth, cols, y.data(), y.row(), {y.data()[0], cols});
  ASSERT_TRUE(y.gaps_are_untouched());
  for (int64_t i = 0; i < rows; ++i) {
    std::vector<double> expected(static_cast<size_t>(cols));
    std::vector<float> sum(static_cast<size_t>(cols));  // of the products of a row and a link alone
    for (int32_t link = 0; link < count; ++link) {
      Matrices<float> alone(1, 1, cols, 0);
      const float* const row = x.inputs()[link] + i * x.row();
      const Links one{&row, w.inputs() + link, 1};
      k.products(&one, 1, x.row(), 1, w.row(), depth, cols, alone.data(), alone.row(), {});
      for (int64_t j = 0; j < cols; ++j) {
        const auto at = static_cast<size_t>(j);
        sum[at] = link > 0 ? sum[at] + alone.at(0, 0, j) : alone.at(0, 0, j);
        for (int64_t d = 0; d < depth; ++d) expected[at] += x.value(link, i, d) * w.value(link, d, j);
      }
    }
    for (int64_t j = 0; j < cols; ++j) {
      const auto at = static_cast<size_t>(j);
      ASSERT_NEAR(y.value(0, i, j), expected[at], 2e-7 * static_cast<double>(links * depth + 1))
          << i << ", " << j;
      ASSERT_EQ(y.at(0, i, j), sum[at]) << i << ", " << j;
    }
  }
}

TEST(Product, EverySize) {
  test::for_all_sizes([](const Table& k, int64_t rows, int64_t cols) {
    check_product(k, 1, rows, cols, (rows + 2 * cols) % 7);
  });
}

TEST(Product, LongSums) {
  for (const Table* k : test::tables())
    for (const int64_t rows : {1, 5, 6, 7, 13}) check_product(*k, 1, rows, 40, 333);
}

TEST(Product, SeveralLinks) {
  for (const Table* k : test::tables())
    for (const int64_t links : {0, 2, 3, 9})
      for (const int64_t rows : {1, 2, 3, 4, 11, 25})
        for (const int64_t cols : {5, 16, 33, 64, 87}) check_product(*k, links, rows, cols, 19);
}

// The rows of x lie 16, 32 or 64 values apart, for which a column of few outputs has tiles of its own.
TEST(Product, RowsAtDistancesOfTheirOwn) {
  for (const Table* k : test::tables())
    for (const int64_t depth : {13, 29, 61})
      for (const int64_t rows : {7, 8, 15, 16, 17, 31, 40, 50})
        for (const int64_t cols : {16, 48}) {
          check_product(*k, 1, rows, cols, depth);
          check_product(*k, 3, rows, cols, depth);
        }
}

// Several products of one shape have the bits that each has alone; one without links is zero.
TEST(Product, SeveralAtOnce) {
  constexpr int32_t kCount = 5;
  for (const Table* k : test::tables())
    for (const int64_t rows : {1, 4, 8, 24, 31})
      for (const int64_t cols : {5, 16, 33, 64, 80})
        for (const int64_t depth : {0, 13}) {
          Matrices<float> x(2 * kCount, rows, depth, 3), w(2 * kCount, depth, cols, 2),
              y(kCount, rows, cols, 1), next(1, rows, cols, 0);
          x.fill(1);
          w.fill(2);
          std::vector<Links> of;
          for (int32_t i = 0; i < kCount; ++i) of.push_back({x.inputs() + 2 * i, w.inputs() + 2 * i, i % 3});
          k->products(of.data(), kCount, x.row(), rows, w.row(), depth, cols, y.data(), y.row(),
                      {next.data()[0], cols});
          ASSERT_TRUE(y.gaps_are_untouched());
          for (int32_t i = 0; i < kCount; ++i) {
            Matrices<float> alone(1, rows, cols, 0);
            k->products(&of[static_cast<size_t>(i)], 1, x.row(), rows, w.row(), depth, cols, alone.data(),
                        alone.row(), {});
            for (int64_t row = 0; row < rows; ++row)
              for (int64_t col = 0; col < cols; ++col) {
                ASSERT_EQ(y.at(i, row, col), alone.at(0, row, col)) << i << ": " << row << ", " << col;
                if (i % 3 == 0) {
                  ASSERT_EQ(y.at(i, row, col), 0);
                }
              }
          }
          k->products(of.data(), 0, x.row(), rows, w.row(), depth, cols, nullptr, y.row(), {});
        }
}

}  // namespace
}  // namespace quatrain::kernels::cpu
