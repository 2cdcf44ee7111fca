// Every table's functions against plain loops in double precision: tails, strides, sparse mixtures, and no
// byte touched that is not theirs.

#include "kernels/cpu/kernels.h"
#include "kernels/cpu/groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "kernels/matrices.h"

namespace quatrain::kernels::cpu {
namespace {

using test::Matrices;
using test::to_double;

/// 0 .. 33, 64, 100: every tail of every vector length, and more than one block.
std::vector<int64_t> sizes() {
  std::vector<int64_t> result(34);
  std::iota(result.begin(), result.end(), 0);
  result.insert(result.end(), {64, 100});
  return result;
}

std::vector<const Table*> tables() {
  std::vector<const Table*> result;
  for (const Table* const* table = available(); *table; ++table) result.push_back(*table);
  return result;
}

/// A function's column of the table, by its types.
template <class In, class Out>
auto combine_of(const Table& k) {
  constexpr bool kFromHalves = sizeof(In) == 2, kToHalves = sizeof(Out) == 2;
  if constexpr (kFromHalves && kToHalves)
    return k.combine_b_b;
  else if constexpr (kFromHalves)
    return k.combine_b_f;
  else if constexpr (kToHalves)
    return k.combine_f_b;
  else
    return k.combine_f_f;
}
template <class In, class Out>
auto transpose_of(const Table& k) {
  constexpr bool kFromHalves = sizeof(In) == 2, kToHalves = sizeof(Out) == 2;
  if constexpr (kFromHalves && kToHalves)
    return k.transpose_b_b;
  else if constexpr (kFromHalves)
    return k.transpose_b_f;
  else if constexpr (kToHalves)
    return k.transpose_f_b;
  else
    return k.transpose_f_f;
}
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

/// A sparse mixture of three inputs: all of them, one, none, one twice, two; then four outputs that start
/// alike, two that do, and a copy.
struct Sparse {
  std::vector<int32_t> begin{0, 3, 4, 4, 6, 8, 10, 13, 17, 19, 22, 24, 25},
      source{0, 1, 2, 1, 2, 2, 2, 0, 0, 2, 0, 2, 1, 0, 2, 1, 2, 0, 2, 1, 2, 0, 1, 2, 2};
  std::vector<float> coefficient{0.5F, -1,   0.7071F, 1,    0.25F, -1.5F, 1,    -0.3F, 2,
                                 -1,   0.3F, 0.1F,    -1,   0.6F,  0.2F,  0.9F, 1.1F,  -0.4F,
                                 0.8F, 1,    -0.2F,   0.7F, -0.6F, 0.45F, 1};
  int32_t inputs = 3;

  Groups groups{ungrouped()};

  Mix ungrouped() const {
    return {static_cast<int32_t>(begin.size()) - 1, begin.data(), source.data(), coefficient.data()};
  }
  Mix view() const { return groups.of(ungrouped()); }
};

/// What `got` may differ from `expected`: float32's rounding of a few sums of values below 2 and, in
/// bfloat16, half a unit of its last place.
template <class Out>
double allowance(double expected) {
  return 2e-6 + (sizeof(Out) == 2 ? std::abs(expected) / 256 : 0);
}

template <class In, class Out>
void check_combine(const Table& k, int64_t rows, int64_t cols) {
  const Sparse mix;
  const Mix view = mix.view();
  const auto seed = static_cast<unsigned>(rows * 101 + cols);
  // Each tail meets all four of these, over the other axis' sizes.
  const bool with_bias = rows % 2 == 0;
  const Store how = (rows + cols) / 2 % 2 ? Store::add : Store::set;
  Matrices<In> in(mix.inputs, rows, cols, rows % 3);
  Matrices<Out> out(view.outputs, rows, cols, cols % 5), before(view.outputs, rows, cols, 0);
  Matrices<float> bias(view.outputs, 1, cols, 0);
  in.fill(seed);
  bias.fill(seed + 1);
  before.fill(seed + 2);
  if (how == Store::add)
    for (int32_t o = 0; o < view.outputs; ++o)
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < cols; ++j) out.at(o, i, j) = before.at(o, i, j);
  combine_of<In, Out>(k)(view, in.inputs(), in.row(), out.data(), out.row(), rows, cols,
                         with_bias ? bias.inputs() : nullptr, how);
  ASSERT_TRUE(out.gaps_are_untouched());
  for (int32_t o = 0; o < view.outputs; ++o)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) {
        double expected =
            (with_bias ? bias.value(o, 0, j) : 0) + (how == Store::add ? before.value(o, i, j) : 0);
        for (int32_t e = view.begin[o]; e < view.begin[o + 1]; ++e)
          expected += double{view.coefficient[e]} * in.value(view.source[e], i, j);
        ASSERT_NEAR(out.value(o, i, j), expected, allowance<Out>(expected))
            << "output " << o << " at " << i << ", " << j;
      }
}

template <class In, class Out>
void check_transpose(const Table& k, int64_t rows, int64_t cols) {
  const Sparse mix;
  const Mix view = mix.view();
  Matrices<In> in(mix.inputs, rows, cols, rows % 3);
  Matrices<Out> out(view.outputs, cols, rows, cols % 5);
  in.fill(static_cast<unsigned>(rows * 101 + cols));
  transpose_of<In, Out>(k)(view, mix.inputs, in.inputs(), in.row(), out.data(), out.row(), rows, cols);
  ASSERT_TRUE(out.gaps_are_untouched());
  for (int32_t o = 0; o < view.outputs; ++o)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) {
        double expected = 0;
        for (int32_t e = view.begin[o]; e < view.begin[o + 1]; ++e)
          expected += double{view.coefficient[e]} * in.value(view.source[e], i, j);
        ASSERT_NEAR(out.value(o, j, i), expected, allowance<Out>(expected))
            << "output " << o << " at " << j << ", " << i;
      }
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
  stream_of<T>(k)(weights.inputs(), components, weights.row(), rows, cols, z.data()[0], vectors, y.data()[0],
                  y.row());
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
}

/// Calls `check(table, rows, cols)` for every table and size.
template <class Check>
void for_all_sizes(const Check& check) {
  for (const Table* k : tables())
    for (const int64_t rows : sizes())
      for (const int64_t cols : sizes()) {
        SCOPED_TRACE(std::string(k->name) + ", " + std::to_string(rows) + " x " + std::to_string(cols));
        check(*k, rows, cols);
        if (testing::Test::HasFatalFailure()) return;
      }
}

TEST(Kernels, CombineFloatsIntoFloats) {
  for_all_sizes(&check_combine<float, float>);
}
TEST(Kernels, CombineHalvesIntoFloats) {
  for_all_sizes(&check_combine<bf16, float>);
}
TEST(Kernels, CombineFloatsIntoHalves) {
  for_all_sizes(&check_combine<float, bf16>);
}
TEST(Kernels, CombineHalvesIntoHalves) {
  for_all_sizes(&check_combine<bf16, bf16>);
}
TEST(Kernels, TransposeFloatsIntoFloats) {
  for_all_sizes(&check_transpose<float, float>);
}
TEST(Kernels, TransposeHalvesIntoFloats) {
  for_all_sizes(&check_transpose<bf16, float>);
}
TEST(Kernels, TransposeFloatsIntoHalves) {
  for_all_sizes(&check_transpose<float, bf16>);
}
TEST(Kernels, TransposeHalvesIntoHalves) {
  for_all_sizes(&check_transpose<bf16, bf16>);
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

// What is dropped is a function of seed, row and column, on every instruction set.
TEST(Kernels, DropIsAFunctionOfPlaces) {
  constexpr int64_t kRows = 64, kCols = 512;
  std::vector<std::vector<float>> of_tables;
  for (const Table* k : tables()) {
    std::vector<float> x(kRows * kCols, 2.0F), parts(kRows * kCols, 2.0F);
    const kernels::cpu::Drop drop{7, 1000, 1u << 30, 1.5F};
    k->drop(x.data(), kCols, kRows, kCols, drop);
    for (int64_t row = 0; row < kRows; row += 8) {
      kernels::cpu::Drop from = drop;
      from.row += static_cast<uint64_t>(row);
      k->drop(parts.data() + row * kCols, kCols, 8, 32, from);
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
TEST(Kernels, DropsAreScattered) {
  constexpr int64_t kRows = 1024, kCols = 1024;
  const auto drawn = [](uint64_t seed) {
    std::vector<float> x(kRows * kCols, 1.0F);
    tables().front()->drop(x.data(), kCols, kRows, kCols, {seed, 0, 1u << 30, 1.0F});
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

TEST(Kernels, SoftmaxKeepsNaN) {
  for (const Table* k : tables()) {
    std::vector<float> x(32, 1.0F);
    x[5] = std::numeric_limits<float>::quiet_NaN();
    k->softmax(x.data(), 32, 1, 32, nullptr, 0);
    for (const float value : x) EXPECT_TRUE(std::isnan(value)) << k->name;
  }
}

TEST(Kernels, OutputsThatStartAlikeAreGrouped) {
  const Sparse mix;
  const Mix view = mix.view();
  std::vector<int32_t> found;
  for (int32_t g = 0; g < view.groups; ++g)
    found.insert(found.end(), {view.group[g].first, view.group[g].count, view.group[g].common});
  EXPECT_EQ(found,
            (std::vector<int32_t>{0, 1, 3, 1, 1, 1, 2, 1, 0, 3, 1, 2, 4, 1, 2, 5, 4, 2, 9, 2, 2, 11, 1, 1}));
  const float* const of_four = view.shared + view.group[5].coefficients;
  EXPECT_EQ(std::vector<float>(of_four, of_four + 8),
            (std::vector<float>{2, 0.3F, 0.6F, -0.4F, -1, 0.1F, 0.2F, 0.8F}));
}

TEST(Kernels, SixtyFourComponentsAreTransposed) {
  constexpr int32_t kInputs = 64;
  std::vector<int32_t> begin{0}, source;
  std::vector<float> coefficient;
  for (int32_t c = 0; c < kInputs; ++c) {
    source.push_back(kInputs - 1 - c);
    coefficient.push_back(static_cast<float>(c % 3 - 1));
    begin.push_back(c + 1);
  }
  for (const Table* k : tables()) {
    Matrices<float> in(kInputs, 17, 19, 2), out(kInputs, 19, 17, 1);
    in.fill(1);
    k->transpose_f_f({kInputs, begin.data(), source.data(), coefficient.data()}, kInputs, in.inputs(),
                     in.row(), out.data(), out.row(), 17, 19);
    ASSERT_TRUE(out.gaps_are_untouched());
    for (int32_t c = 0; c < kInputs; ++c)
      for (int64_t i = 0; i < 17; ++i)
        for (int64_t j = 0; j < 19; ++j)
          ASSERT_EQ(out.value(c, j, i),
                    double{coefficient[static_cast<size_t>(c)]} * in.value(kInputs - 1 - c, i, j));
  }
}

/// The nearest bfloat16, the even one of two, by comparing distances.
bf16 nearest(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rest = bits & 0xffffU, below = bits >> 16;
  if (rest > 0x8000U || (rest == 0x8000U && below % 2 == 1)) return static_cast<bf16>(below + 1);
  return static_cast<bf16>(below);
}

TEST(Kernels, RoundsToTheNearestHalf) {
  using Limits = std::numeric_limits<float>;
  std::vector<float> values{0.0F,
                            -0.0F,
                            1.0F,
                            Limits::max(),
                            -Limits::max(),
                            Limits::min(),
                            Limits::denorm_min(),
                            Limits::infinity(),
                            -Limits::infinity()};
  for (const uint32_t upper : {0x3f80U, 0x3f81U, 0xbf80U, 0xc2ffU, 0x0001U, 0x7f7fU})
    for (const uint32_t lower : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU})
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
  const auto count = static_cast<int64_t>(values.size());
  const int32_t begin[] = {0, 1}, source[] = {0};
  const float one[] = {1};
  const Groups groups({1, begin, source, one});
  const Mix copy = groups.of({1, begin, source, one});
  for (const Table* k : tables()) {
    std::vector<bf16> result(values.size());
    const float* in[] = {values.data()};
    bf16* out[] = {result.data()};
    k->combine_f_b(copy, in, count, out, count, 1, count, nullptr, Store::set);
    for (size_t i = 0; i < values.size(); ++i)
      // Sums start at +0, so that -0 becomes +0.
      EXPECT_EQ(result[i], nearest(values[i] + 0.0F)) << k->name << ": " << std::hexfloat << values[i];
  }
}

TEST(Kernels, NaNStaysNaN) {
  const int32_t begin[] = {0, 1}, source[] = {0};
  const float one[] = {1};
  const Groups groups({1, begin, source, one});
  const Mix copy = groups.of({1, begin, source, one});
  for (const Table* k : tables())
    for (const uint32_t bits : {0x7fc00000U, 0x7f800001U, 0x7fffffffU, 0xffffffffU, 0xff800001U}) {
      const std::vector<float> values(19, std::bit_cast<float>(bits));  // whole vectors and a tail
      std::vector<bf16> result(values.size());
      std::vector<float> back(values.size());
      const float* in[] = {values.data()};
      bf16* out[] = {result.data()};
      const bf16* halves[] = {result.data()};
      float* floats[] = {back.data()};
      k->combine_f_b(copy, in, 19, out, 19, 1, 19, nullptr, Store::set);
      k->combine_b_f(copy, halves, 19, floats, 19, 1, 19, nullptr, Store::set);
      for (size_t i = 0; i < values.size(); ++i) {
        EXPECT_TRUE(std::isnan(to_double(result[i]))) << k->name << std::hex << bits;
        EXPECT_TRUE(std::isnan(back[i]));
      }
    }
}

}  // namespace
}  // namespace quatrain::kernels::cpu
