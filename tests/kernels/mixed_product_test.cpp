// Products with mixtures of weights, in every table: the bits of `products` with what `combine` makes, and no
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
                  y.row(), rows % 2 ? Fetched{y.data()[0], cols} : Fetched{nullptr, cols});
  ASSERT_TRUE(y.gaps_are_untouched());
  Matrices<float> mixed(outputs, depth, cols, 0);
  k.combine_f_f(view, w.inputs(), w.row(), mixed.data(), mixed.row(), depth, cols, nullptr, Store::set);
  for (int32_t o = 0; o < outputs; ++o) {
    Matrices<float> expected(1, rows, cols, 0);
    const Links one{x.inputs() + o, mixed.inputs() + o, 1};
    k.products(&one, 1, x.row(), rows, mixed.row(), depth, cols, expected.data(), expected.row(), {});
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        ASSERT_EQ(y.at(o, i, j), expected.at(0, i, j)) << "output " << o << " at " << i << ", " << j;
  }
}

/// Four of pairs for each choice of signs, between `copies` inputs as they are.
Sparse pairs_and_copies(int32_t copies) {
  Sparse mix;
  mix.begin = {0}, mix.source.clear(), mix.coefficient.clear(), mix.inputs = 5;
  const auto copy = [&](int32_t count) {
    for (int32_t t = 0; t < count; ++t) {
      mix.source.push_back((3 * t + 2) % 5), mix.coefficient.push_back(1);
      mix.end();
    }
  };
  for (int32_t opposite = 0; opposite < 4; ++opposite) {
    copy(opposite < 2 ? copies : 0);
    for (int32_t t = 0; t < 4; ++t) {
      for (int32_t e = 0; e < 4; ++e) {
        const bool minus = e % 2 == 1 && (t % 2 == 1) != ((opposite >> (e / 2) & 1) == 1);
        const float size = 0.25F + 0.1F * static_cast<float>((e / 2 + 3 * t + opposite) % 7);
        mix.source.push_back((opposite + e) % 5), mix.coefficient.push_back(minus ? -size : size);
      }
      mix.end();
    }
  }
  copy(copies);
  mix.groups = Groups(mix.ungrouped());
  return mix;
}

TEST(MixedProduct, EverySize) {
  const Sparse mix = pairs_and_copies(4);
  ASSERT_TRUE(has_cheap_outputs(mix.view()));
  test::for_all_sizes([&](const Table& k, int64_t rows, int64_t cols) {
    if (rows > 0 && rows < 14) check(k, mix, rows, cols, 1 + (rows + 2 * cols) % 7);
  });
}

TEST(MixedProduct, AnyNumberOfCopies) {
  for (const Table* k : test::tables())
    for (const int32_t copies : {0, 1, 2, 3, 4, 5, 7, 9})
      for (const int64_t rows : {1, 2, 3, 4, 7}) {
        const Sparse mix = pairs_and_copies(copies);
        ASSERT_TRUE(has_cheap_outputs(mix.view()));
        ASSERT_NO_FATAL_FAILURE(check(*k, mix, rows, 37, 21)) << k->name << ", " << copies << ", " << rows;
      }
}

/// The four sums and differences of a transform of Hadamard's, times a factor; one sign is changed if asked.
Sparse hadamard(float factor, bool changed) {
  Sparse mix;
  mix.begin = {0}, mix.source.clear(), mix.coefficient.clear(), mix.inputs = 4;
  for (int32_t t = 0; t < 4; ++t) {
    for (int32_t e = 0; e < 4; ++e) {
      const bool minus = (((t & 1) * (e & 1) + (t >> 1) * (e >> 1)) % 2 == 1) != (changed && e >= 2);
      mix.source.push_back(3 - e), mix.coefficient.push_back(minus ? -factor : factor);
    }
    mix.end();
  }
  mix.source.push_back(2), mix.coefficient.push_back(1);
  mix.end();
  mix.groups = Groups(mix.ungrouped());
  return mix;
}

// Whether sums are multiplied by the factor or each mixture is, no bit is another one.
TEST(MixedProduct, TransformsOfHadamard) {
  for (const float factor : {1.F, 0.25F, 4.F, 0.3F, -0.25F})
    for (const bool changed : {false, true}) {
      const Sparse mix = hadamard(factor, changed);
      ASSERT_TRUE(has_cheap_outputs(mix.view()));
      const bool power = factor != 0.3F && factor != -0.25F;
      EXPECT_EQ(mix.view().group[0].hadamard, power && !changed ? factor : 0) << factor << ", " << changed;
      for (const Table* k : test::tables())
        for (const int64_t rows : {1, 2, 3, 4, 6})
          for (const int64_t cols : {7, 16, 40})
            ASSERT_NO_FATAL_FAILURE(check(*k, mix, rows, cols, 21))
                << k->name << ", " << factor << ", " << rows;
    }
}

TEST(MixedProduct, OtherMixturesCostMore) {
  EXPECT_FALSE(has_cheap_outputs(Sparse().view()));
  EXPECT_FALSE(has_cheap_outputs(Sparse::of_groups().view()));
}

}  // namespace
}  // namespace quatrain::kernels::cpu
