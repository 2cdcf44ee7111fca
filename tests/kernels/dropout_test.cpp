// The kernels of dropout: what they drop, how it is scattered, and that nothing else is touched.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/matrices.h"
#include "kernels/tables.h"

namespace quatrain::kernels::cpu {
namespace {

using test::for_all_sizes;
using test::Matrices;
using test::tables;

void drop(const Table& k, const float* x, int64_t x_row, float* y, int64_t y_row, int64_t rows, int64_t cols,
          const Drop& drop) {
  k.drop_f(x, x_row, y, y_row, rows, cols, drop);
}
void drop(const Table& k, const bf16* x, int64_t x_row, bf16* y, int64_t y_row, int64_t rows, int64_t cols,
          const Drop& drop) {
  k.drop_b(x, x_row, y, y_row, rows, cols, drop);
}

// A row is the start of a wider one.
template <class T>
void check_drop(const Table& k, int64_t rows, int64_t cols) {
  constexpr int64_t kWide = 128;
  const Drop drops{3, 5, 1U << 31, 2.0F};
  std::vector<float> wide(static_cast<size_t>(rows * kWide), 1.0F);
  drop(k, wide.data(), kWide, wide.data(), kWide, rows, kWide, drops);
  Matrices<T> x(1, rows, cols, rows % 3), y(1, rows, cols, cols % 5);
  x.fill(static_cast<unsigned>(rows * 101 + cols));
  drop(k, x.inputs()[0], x.row(), y.data()[0], y.row(), rows, cols, drops);
  ASSERT_TRUE(y.gaps_are_untouched());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      ASSERT_EQ(y.value(0, i, j), double{wide[static_cast<size_t>(i * kWide + j)]} * x.value(0, i, j))
          << k.name << ' ' << i << ' ' << j;
}

TEST(Dropout, OfFloats) {
  for_all_sizes(&check_drop<float>);
}
TEST(Dropout, OfHalves) {
  for_all_sizes(&check_drop<bf16>);
}

// What is dropped is a function of seed, row and column, on every instruction set.
TEST(Dropout, IsAFunctionOfPlaces) {
  constexpr int64_t kRows = 64, kCols = 512;
  std::vector<std::vector<float>> of_tables;
  for (const Table* k : tables()) {
    std::vector<float> x(kRows * kCols, 2.0F), parts(kRows * kCols, 2.0F);
    const Drop drops{7, 1000, 1u << 30, 1.5F};
    k->drop_f(x.data(), kCols, x.data(), kCols, kRows, kCols, drops);
    for (int64_t row = 0; row < kRows; row += 8) {
      Drop from = drops;
      from.row += static_cast<uint64_t>(row);
      k->drop_f(parts.data() + row * kCols, kCols, parts.data() + row * kCols, kCols, 8, 32, from);
    }
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < 32; ++j)
        ASSERT_EQ(x[static_cast<size_t>(i * kCols + j)], parts[static_cast<size_t>(i * kCols + j)])
            << k->name;
    for (const float value : x) ASSERT_TRUE(value == 0 || value == 3.0F);
    of_tables.push_back(std::move(x));
  }
  for (const auto& x : of_tables) EXPECT_EQ(x, of_tables.front());
}

// A quarter is dropped in every row and column, and no two places, rows or seeds next to each other agree
// more often than by chance: each share within 4.5 standard deviations.
TEST(Dropout, IsScattered) {
  constexpr int64_t kRows = 1024, kCols = 1024;
  const auto drawn = [](uint64_t seed) {
    std::vector<float> x(kRows * kCols, 1.0F);
    tables().front()->drop_f(x.data(), kCols, x.data(), kCols, kRows, kCols, {seed, 0, 1u << 30, 1.0F});
    return x;
  };
  const auto near = [](double share, double expected, double count) {
    return std::abs(share - expected) < 4.5 * std::sqrt(expected * (1 - expected) / count);
  };
  constexpr double kTogether = 0.0625;  // both dropped
  for (const uint64_t seed : {0, 1, 2, 1 << 20}) {
    const std::vector<float> x = drawn(seed), next = drawn(seed + 1);
    const auto dropped = [](const std::vector<float>& of, int64_t i, int64_t j) {
      return of[static_cast<size_t>(i * kCols + j)] == 0 ? 1 : 0;
    };
    int64_t right = 0, below = 0, other_seed = 0;
    std::vector<int64_t> of_row(kRows), of_column(kCols);
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < kCols; ++j) {
        const int here = dropped(x, i, j);
        of_row[static_cast<size_t>(i)] += here, of_column[static_cast<size_t>(j)] += here;
        right += here & dropped(x, i, (j + 1) % kCols);
        below += here & dropped(x, (i + 1) % kRows, j);
        other_seed += here & dropped(next, i, j);
      }
    for (int64_t i = 0; i < kRows; ++i) {
      EXPECT_TRUE(near(static_cast<double>(of_row[static_cast<size_t>(i)]) / kCols, 0.25, kCols)) << i;
      EXPECT_TRUE(near(static_cast<double>(of_column[static_cast<size_t>(i)]) / kRows, 0.25, kRows)) << i;
    }
    for (const int64_t count : {right, below, other_seed})
      EXPECT_TRUE(near(static_cast<double>(count) / (kRows * kCols), kTogether, kRows * kCols / 2))
          << right << ' ' << below << ' ' << other_seed;
  }
}

}  // namespace
}  // namespace quatrain::kernels::cpu
