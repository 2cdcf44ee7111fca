// Every table's functions against plain loops in double precision: tails, strides, and no byte touched that
// is not theirs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "kernels/matrices.h"
#include "kernels/tables.h"

namespace quatrain::kernels::cpu {
namespace {

using test::for_all_sizes;
using test::Matrices;
using test::sizes;
using test::tables;
using test::to_double;

template <class T>
auto dots_of(const Table& k) {
  if constexpr (sizeof(T) == 4)
    return k.dots_f;
  else
    return k.dots_b;
}
template <class T>
auto stream_of(const Table& k) {
  if constexpr (sizeof(T) == 4)
    return k.stream_f;
  else
    return k.stream_b;
}

void check_pair(const Table& k, int64_t rows, int64_t cols) {
  const int64_t width = (cols + 15) / 16 * 16, pairs = (rows + 1) / 2;
  Matrices<float> in(1, rows, cols, rows % 3);
  Matrices<bf16> out(1, pairs, 2 * width, 0);
  in.fill(static_cast<unsigned>(rows * 101 + cols));
  k.pair(in.data()[0], in.row(), rows, cols, out.data()[0], width);
  ASSERT_TRUE(out.gaps_are_untouched());
  for (int64_t i = 0; i < 2 * pairs; ++i)
    for (int64_t j = 0; j < width; ++j) {
      const double expected = i < rows && j < cols ? in.value(0, i, j) : 0;
      ASSERT_NEAR(out.value(0, i / 2, 2 * j + i % 2), expected, std::abs(expected) / 256) << i << ", " << j;
    }
}

template <class T>
void check_dots(const Table& k, int32_t count_a, int32_t count_b, int64_t rows, int64_t cols) {
  Matrices<T> a(count_a, rows, cols, rows % 3);
  Matrices<float> b(count_b, rows, cols, cols % 5), sums(1, count_a, count_b, 0);
  const auto seed = static_cast<unsigned>(rows * 101 + cols);
  a.fill(seed);
  b.fill(seed + 1);
  for (int32_t i = 0; i < count_a; ++i)
    for (int32_t r = 0; r < count_b; ++r) sums.at(0, i, r) = static_cast<float>(i - r);  // added to
  dots_of<T>(k)(a.inputs(), count_a, a.row(), b.inputs(), count_b, b.row(), rows, cols, &sums.at(0, 0, 0));
  ASSERT_TRUE(sums.gaps_are_untouched());
  for (int32_t i = 0; i < count_a; ++i)
    for (int32_t r = 0; r < count_b; ++r) {
      double expected = i - r;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t q = 0; q < cols; ++q) expected += a.value(i, row, q) * b.value(r, row, q);
      ASSERT_NEAR(sums.value(0, i, r), expected, 1e-6 * (8 + std::sqrt(static_cast<double>(rows * cols))))
          << i << ", " << r;
    }
}

template <class T>
void check_stream(const Table& k, int32_t components, int64_t vectors, int64_t rows, int64_t cols) {
  Matrices<T> weights(components, rows, cols, rows % 3);
  Matrices<float> z(1, vectors, components * cols, 0), y(1, vectors, rows, cols % 5);
  const auto seed = static_cast<unsigned>(rows * 101 + cols);
  weights.fill(seed);
  z.fill(seed + 1);
  // What is fetched in the end is never read.
  static const T last{};
  const T* const past = &last + 1;
  stream_of<T>(k)(weights.inputs(), components, weights.row(), rows, cols, z.data()[0], vectors, y.data()[0],
                  y.row(), rows % 2 ? nullptr : past);
  ASSERT_TRUE(y.gaps_are_untouched());
  for (int64_t g = 0; g < vectors; ++g)
    for (int64_t row = 0; row < rows; ++row) {
      double expected = 0;
      for (int32_t c = 0; c < components; ++c)
        for (int64_t q = 0; q < cols; ++q) expected += weights.value(c, row, q) * z.value(0, g, c * cols + q);
      ASSERT_NEAR(y.value(0, g, row), expected,
                  3e-6 * (1 + std::sqrt(static_cast<double>(components * cols))))
          << g << ", " << row;
    }

  // A part of the rows and one vector have the same bits.
  if (rows < 2 || vectors < 2) return;
  const int64_t from = rows / 3, count = (rows + 1) / 2, g = vectors / 2;
  std::vector<const T*> below;
  for (int32_t c = 0; c < components; ++c) below.push_back(weights.inputs()[c] + from * weights.row());
  std::vector<float> alone(static_cast<size_t>(count));
  stream_of<T>(k)(below.data(), components, weights.row(), count, cols, &z.at(0, g, 0), 1, alone.data(),
                  count, nullptr);
  for (int64_t row = 0; row < count; ++row)
    ASSERT_EQ(alone[static_cast<size_t>(row)], y.at(0, g, from + row)) << row;
}

TEST(Kernels, PairRows) {
  for_all_sizes(&check_pair);
}

/// The numbers of operands change with the sizes: 1 .. 6 and 1 .. 7 meet every tile's edge.
TEST(Kernels, DotsOfFloats) {
  for_all_sizes([](const Table& k, int64_t rows, int64_t cols) {
    check_dots<float>(k, static_cast<int32_t>(1 + rows % 6), static_cast<int32_t>(1 + cols % 7), rows, cols);
  });
}
TEST(Kernels, DotsOfHalves) {
  for_all_sizes([](const Table& k, int64_t rows, int64_t cols) {
    check_dots<bf16>(k, static_cast<int32_t>(1 + cols % 6), static_cast<int32_t>(1 + rows % 7), rows, cols);
  });
}

TEST(Kernels, StreamFloats) {
  for_all_sizes([](const Table& k, int64_t rows, int64_t cols) {
    check_stream<float>(k, static_cast<int32_t>(1 + cols % 3), (rows + cols) % 10, rows, cols);
  });
}
TEST(Kernels, StreamHalves) {
  for_all_sizes([](const Table& k, int64_t rows, int64_t cols) {
    check_stream<bf16>(k, static_cast<int32_t>(1 + rows % 3), (rows + 2 * cols) % 10, rows, cols);
  });
}
TEST(Kernels, StreamInSeveralStripsOfRows) {
  for (const Table* k : tables()) {
    check_stream<float>(*k, 8, 9, 30, 2001);
    check_stream<float>(*k, 5, 6, 340, 200);  // two components at once, then one
    check_stream<bf16>(*k, 5, 6, 31, 3003);
  }
}

TEST(Kernels, SoftmaxOfRows) {
  for (const Table* k : tables())
    for (const int64_t cols : {16, 32, 48, 160})
      for (const int64_t biases : {0, 1, 5}) {  // none, one for all rows, one a row
        SCOPED_TRACE(std::string(k->name) + ", " + std::to_string(cols));
        constexpr int64_t kRows = 5;
        Matrices<float> x(1, kRows, cols, 3), before(1, kRows, cols, 0), bias(1, kRows, cols, 2);
        before.fill(static_cast<unsigned>(cols));
        const auto of_row = [&](int64_t i) { return biases == 1 ? 0 : i; };
        for (int64_t i = 0; i < kRows; ++i)
          for (int64_t j = 0; j < cols; ++j)
            bias.at(0, i, j) =
                (i + j) % 3 == 1 ? -std::numeric_limits<float>::infinity() : static_cast<float>(j % 2);
        for (int64_t i = 0; i < kRows; ++i)
          for (int64_t j = 0; j < cols; ++j)  // differences up to 2, 20, .. 20000
            x.at(0, i, j) = before.at(0, i, j) *= static_cast<float>(std::pow(10.0, static_cast<double>(i)));
        k->softmax(x.data()[0], x.row(), kRows, cols, biases > 0 ? bias.data()[0] : nullptr,
                   biases > 1 ? bias.row() : 0);
        ASSERT_TRUE(x.gaps_are_untouched());
        for (int64_t i = 0; i < kRows; ++i) {
          std::vector<double> v(static_cast<size_t>(cols));
          for (int64_t j = 0; j < cols; ++j)
            v[static_cast<size_t>(j)] = before.at(0, i, j) + (biases > 0 ? bias.at(0, of_row(i), j) : 0.0F);
          const double top = *std::max_element(v.begin(), v.end());
          double sum = 0;
          for (double& value : v) sum += value = std::exp(value - top);
          for (int64_t j = 0; j < cols; ++j) {
            const double expected = v[static_cast<size_t>(j)] / sum;
            const double rounding =
                6e-8 * (top - std::min(top, double{before.at(0, i, j)}));  // of the difference
            ASSERT_NEAR(x.value(0, i, j), expected, (1e-6 + 2 * rounding) * expected + 1e-37)
                << i << ", " << j;
          }
        }
      }
}

TEST(Kernels, SoftmaxBackwardOfRows) {
  for (const Table* k : tables())
    for (const int64_t cols : {16, 48, 160}) {
      SCOPED_TRACE(std::string(k->name) + ", " + std::to_string(cols));
      constexpr int64_t kRows = 3;
      Matrices<float> y(1, kRows, cols, 3), dy(1, kRows, cols, 1), before(1, kRows, cols, 0);
      y.fill(1), dy.fill(2), before.fill(2);
      k->softmax_backward(y.data()[0], y.row(), dy.data()[0], dy.row(), kRows, cols);
      ASSERT_TRUE(y.gaps_are_untouched() && dy.gaps_are_untouched());
      for (int64_t i = 0; i < kRows; ++i) {
        double mean = 0;
        for (int64_t j = 0; j < cols; ++j) mean += double{y.at(0, i, j)} * before.at(0, i, j);
        for (int64_t j = 0; j < cols; ++j)
          ASSERT_NEAR(dy.value(0, i, j), y.at(0, i, j) * (before.at(0, i, j) - mean),
                      1e-5 * (1 + std::abs(mean)));
      }
    }
}

TEST(Kernels, SoftmaxKeepsNaN) {
  for (const Table* k : tables()) {
    std::vector<float> x(32, 1.0F);
    x[5] = std::numeric_limits<float>::quiet_NaN();
    k->softmax(x.data(), 32, 1, 32, nullptr, 0);
    for (const float value : x) EXPECT_TRUE(std::isnan(value)) << k->name;
  }
}

}  // namespace
}  // namespace quatrain::kernels::cpu
