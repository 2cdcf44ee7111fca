// Sums of products of components, in every table: values against double precision, and no byte beside them.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "kernels/matrices.h"

namespace quatrain::kernels::cpu {
namespace {

using test::Matrices;

TEST(Multiply, ComponentsOfEverySize) {
  const std::vector<int32_t> begin{0, 3, 3, 5}, left{0, 1, 1, 2, 0}, right{1, 0, 1, 1, 0};
  const std::vector<float> coefficient{1, -1, 0.5F, 2, -0.25F};
  const Bilinear sums{3, begin.data(), left.data(), right.data(), coefficient.data()};
  for (const Table* const* table = available(); *table; ++table)
    for (const int64_t rows : {0, 1, 3})
      for (const int64_t cols : {0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100})
        for (const Store how : {Store::set, Store::add}) {
          SCOPED_TRACE(std::string((*table)->name) + ", " + std::to_string(rows) + " x " +
                       std::to_string(cols));
          Matrices<float> a(3, rows, cols, 2), b(2, rows, cols, 5), out(3, rows, cols, 1),
              before(3, rows, cols, 0);
          a.fill(1);
          b.fill(2);
          before.fill(3);
          const auto each = [&](const auto& visit) {
            for (int32_t o = 0; o < 3; ++o)
              for (int64_t i = 0; i < rows; ++i)
                for (int64_t j = 0; j < cols; ++j) visit(o, i, j);
          };
          if (how == Store::add)
            each([&](int32_t o, int64_t i, int64_t j) { out.at(o, i, j) = before.at(o, i, j); });
          (*table)->multiply(sums, a.inputs(), a.row(), b.inputs(), b.row(), out.data(), out.row(), rows,
                             cols, how);
          ASSERT_TRUE(out.gaps_are_untouched());
          each([&](int32_t o, int64_t i, int64_t j) {
            double expected = how == Store::add ? before.value(o, i, j) : 0;
            for (int32_t e = sums.begin[o]; e < sums.begin[o + 1]; ++e)
              expected += double{coefficient[static_cast<size_t>(e)]} *
                          a.value(left[static_cast<size_t>(e)], i, j) *
                          b.value(right[static_cast<size_t>(e)], i, j);
            ASSERT_NEAR(out.value(o, i, j), expected, 2e-6) << "output " << o << " at " << i << ", " << j;
          });
        }
}

}  // namespace
}  // namespace quatrain::kernels::cpu
