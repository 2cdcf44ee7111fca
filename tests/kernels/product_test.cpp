// Products of a few rows, in every table: values against double precision, the same bits however many rows
// there are, and no byte beside the operands.

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/cpu/kernels.h"
#include "kernels/matrices.h"
#include "kernels/tables.h"

namespace quatrain::kernels::cpu {
namespace {

using test::Matrices;

void check_product(const Table& k, int64_t rows, int64_t cols, int64_t depth) {
  Matrices<float> x(1, rows, depth, 3), w(1, depth, cols, 2), y(1, rows, cols, 1);
  x.fill(1);
  w.fill(2);
  k.product(x.inputs()[0], x.row(), rows, w.inputs()[0], w.row(), depth, cols, y.data()[0], y.row());
  ASSERT_TRUE(y.gaps_are_untouched());
  for (int64_t i = 0; i < rows; ++i) {
    Matrices<float> alone(1, 1, cols, 0);
    k.product(x.inputs()[0] + i * x.row(), x.row(), 1, w.inputs()[0], w.row(), depth, cols, alone.data()[0],
              alone.row());
    for (int64_t j = 0; j < cols; ++j) {
      double expected = 0;
      for (int64_t d = 0; d < depth; ++d) expected += x.value(0, i, d) * w.value(0, d, j);
      ASSERT_NEAR(y.value(0, i, j), expected, 2e-7 * static_cast<double>(depth + 1)) << i << ", " << j;
      ASSERT_EQ(y.at(0, i, j), alone.at(0, 0, j)) << i << ", " << j;
    }
  }
}

TEST(Product, EverySize) {
  test::for_all_sizes([](const Table& k, int64_t rows, int64_t cols) {
    check_product(k, rows, cols, (rows + 2 * cols) % 7);
  });
}

TEST(Product, LongSums) {
  for (const Table* k : test::tables())
    for (const int64_t rows : {1, 5, 6, 7, 13}) check_product(*k, rows, 40, 333);
}

}  // namespace
}  // namespace quatrain::kernels::cpu
