// Products with mixtures of weights, in every table: the bits of `product` with what `combine` makes, and no
// byte beside the operands.

#include <gtest/gtest.h>

#include <vector>

#include "kernels/matrices.h"
#include "kernels/sparse.h"
#include "kernels/tables.h"

namespace quatrain::kernels::cpu {
namespace {

using test::Matrices;
using test::Sparse;

void check(const Table& k, const Sparse& mix, int64_t rows, int64_t cols, int64_t depth) {
  const Mix view = mix.view();
  const int32_t outputs = view.outputs;
  Matrices<float> x(outputs, rows, depth, 3), w(mix.inputs, depth, cols, 2), y(outputs, rows, cols, 1);
  x.fill(1);
  w.fill(2);
  // Operands of outputs side by side, as the engine's are.
  const int64_t x_output = rows * x.row();
  k.mixed_product(view, w.inputs(), w.row(), depth, cols, x.inputs()[0], x_output, x.row(), rows, y.data(),
                  y.row(), {y.data()[0], cols});
  ASSERT_TRUE(y.gaps_are_untouched());
  Matrices<float> mixed(outputs, depth, cols, 0);
  k.combine_f_f(view, w.inputs(), w.row(), mixed.data(), mixed.row(), depth, cols, nullptr, Store::set);
  for (int32_t o = 0; o < outputs; ++o) {
    Matrices<float> expected(1, rows, cols, 0);
    k.product({x.inputs() + o, mixed.inputs() + o, 1}, x.row(), rows, mixed.row(), depth, cols,
              expected.data()[0], expected.row(), {});
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        ASSERT_EQ(y.at(o, i, j), expected.at(0, i, j)) << "output " << o << " at " << i << ", " << j;
  }
}

/// Four copies, as half of the quaternions' products have, then three and a sum.
Sparse copies() {
  Sparse mix;
  mix.begin = {0, 1, 2, 3, 4, 5, 6, 7, 9}, mix.source = {3, 0, 2, 1, 0, 3, 1, 2, 1};
  mix.coefficient = {1, 1, 1, 1, 1, 1, 1, 0.5F, -2}, mix.inputs = 4;
  mix.groups = Groups(mix.ungrouped());
  return mix;
}

TEST(MixedProduct, EverySize) {
  for (const Sparse& mix : {Sparse(), copies()})
    test::for_all_sizes([&](const Table& k, int64_t rows, int64_t cols) {
      if (rows > 0 && rows < 14) check(k, mix, rows, cols, 1 + (rows + 2 * cols) % 7);
    });
}

TEST(MixedProduct, GroupsOfAllKinds) {
  const Sparse mix = Sparse::of_groups();
  for (const Table* k : test::tables())
    for (const int64_t rows : {1, 2, 3, 4, 7})
      for (const int64_t cols : {5, 16, 33, 64})
        ASSERT_NO_FATAL_FAILURE(check(*k, mix, rows, cols, 21)) << k->name << ", " << rows << " x " << cols;
}

}  // namespace
}  // namespace quatrain::kernels::cpu
