// Mixtures of every table, as they lie and transposed, against plain loops in double precision: tails,
// strides, groups of outputs, rounding, and no byte touched that is not theirs.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "kernels/matrices.h"
#include "kernels/sparse.h"
#include "kernels/tables.h"

namespace quatrain::kernels::cpu {
namespace {

using test::for_all_sizes;
using test::Matrices;
using test::Sparse;
using test::tables;
using test::to_double;

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
/// What `got` may differ from `expected`: float32's rounding of up to a dozen sums of values of about 1 and,
/// in bfloat16, half a unit of its last place.
template <class Out>
double allowance(double expected) {
  return 2e-6 + (sizeof(Out) == 2 ? std::abs(expected) / 256 : 0);
}

/// Rows of the operands lie so many values further apart than they are long.
template <class In, class Out>
void check_combine_of(const Table& k, const Sparse& mix, int64_t rows, int64_t cols, int64_t in_padding,
                      int64_t out_padding) {
  const Mix view = mix.view();
  const auto seed = static_cast<unsigned>(rows * 101 + cols);
  // Each tail meets all four of these, over the other axis' sizes.
  const bool with_bias = rows % 2 == 0;
  const Store how = (rows + cols) / 2 % 2 ? Store::add : Store::set;
  Matrices<In> in(mix.inputs, rows, cols, in_padding);
  Matrices<Out> out(view.outputs, rows, cols, out_padding), before(view.outputs, rows, cols, 0);
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
void check_combine(const Table& k, int64_t rows, int64_t cols) {
  check_combine_of<In, Out>(k, Sparse(), rows, cols, rows % 3, cols % 5);
}

template <class In, class Out>
void check_groups(const Table& k) {
  const Sparse mix = Sparse::of_groups();
  std::set<std::tuple<int32_t, int32_t, More>> kinds;
  std::set<std::tuple<int32_t, More, bool, bool, bool>> pairs;
  for (int32_t g = 0; g < mix.view().groups; ++g) {
    const MixGroup& group = mix.view().group[g];
    if (group.paired)
      pairs.emplace(group.common, group.more, group.opposite[0], group.opposite[1], group.ones);
    else
      kinds.emplace(group.count, group.common, group.more);
  }
  for (const int32_t count : {4, 2})
    for (int32_t shared = 2; shared <= 6; ++shared)
      for (const More more : {More::none, More::one, More::any})
        ASSERT_TRUE(kinds.contains({count, shared, more})) << count << ", " << shared;
  ASSERT_EQ(pairs.size(), 2 * 3 * 3 * 4);
  for (const int64_t cols : {int64_t{9}, int64_t{16}, int64_t{64}, int64_t{131}})
    for (const int64_t rows : {1, 2, 3, 4, 9})
      for (const auto& [in_padding, out_padding] :
           {std::pair<int64_t, int64_t>{0, 1}, {cols, 0}, {3, 2 * cols}, {cols + 1, cols}})
        ASSERT_NO_FATAL_FAILURE((check_combine_of<In, Out>(k, mix, rows, cols, in_padding, out_padding)))
            << rows << " x " << cols << ", padding " << in_padding << ", " << out_padding;
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

TEST(Mixtures, CombineFloatsIntoFloats) {
  for_all_sizes(&check_combine<float, float>);
}
TEST(Mixtures, CombineHalvesIntoFloats) {
  for_all_sizes(&check_combine<bf16, float>);
}
TEST(Mixtures, CombineFloatsIntoHalves) {
  for_all_sizes(&check_combine<float, bf16>);
}
TEST(Mixtures, CombineHalvesIntoHalves) {
  for_all_sizes(&check_combine<bf16, bf16>);
}
TEST(Mixtures, CombineGroupsOfAllKinds) {
  for (const Table* k : tables()) {
    SCOPED_TRACE(k->name);
    ASSERT_NO_FATAL_FAILURE((check_groups<float, float>(*k)));
    ASSERT_NO_FATAL_FAILURE((check_groups<bf16, float>(*k)));
    ASSERT_NO_FATAL_FAILURE((check_groups<float, bf16>(*k)));
    ASSERT_NO_FATAL_FAILURE((check_groups<bf16, bf16>(*k)));
  }
}
// Two of four outputs that could be paired, and all of them.
TEST(Mixtures, WithoutPairsAnOutputHasTheSameBitsInAnyGroup) {
  const int32_t begin[] = {0, 4, 8, 12, 16}, source[] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
  const float coefficient[] = {1, 1, 1, 1, 1, -1, 1, -1, 1, 1, -1, -1, 1, -1, -1, 1};
  const Mix all{4, begin, source, coefficient}, two{2, begin + 2, source, coefficient};
  const Groups paired(all), plain(all, /*pairs=*/false), of_two(two, /*pairs=*/false);
  EXPECT_TRUE(paired.of(all).group[0].paired);
  EXPECT_FALSE(plain.of(all).group[0].paired);
  Matrices<float> in(4, 3, 45, 1), out(4, 3, 45, 0), part(2, 3, 45, 0);
  in.fill(1);
  for (const Table* k : tables()) {
    k->combine_f_f(plain.of(all), in.inputs(), in.row(), out.data(), out.row(), 3, 45, nullptr, Store::set);
    k->combine_f_f(of_two.of(two), in.inputs(), in.row(), part.data(), part.row(), 3, 45, nullptr,
                   Store::set);
    for (int32_t o = 0; o < 2; ++o)
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 45; ++j) ASSERT_EQ(out.at(o + 2, i, j), part.at(o, i, j)) << k->name;
  }
}
TEST(Mixtures, TransposeFloatsIntoFloats) {
  for_all_sizes(&check_transpose<float, float>);
}
TEST(Mixtures, TransposeHalvesIntoFloats) {
  for_all_sizes(&check_transpose<bf16, float>);
}
TEST(Mixtures, TransposeFloatsIntoHalves) {
  for_all_sizes(&check_transpose<float, bf16>);
}
TEST(Mixtures, TransposeHalvesIntoHalves) {
  for_all_sizes(&check_transpose<bf16, bf16>);
}
TEST(Mixtures, TransposedOnesHaveTheSameBits) {
  const Sparse mix = Sparse::of_groups();
  const int32_t outputs = mix.view().outputs;
  for (const Table* k : tables())
    for (const int64_t rows : {3, 16, 37})
      for (const int64_t cols : {5, 16, 35}) {
        Matrices<float> in(mix.inputs, rows, cols, 1), out(outputs, rows, cols, 0),
            transposed(outputs, cols, rows, 2);
        in.fill(1);
        k->combine_f_f(mix.view(), in.inputs(), in.row(), out.data(), out.row(), rows, cols, nullptr,
                       Store::set);
        k->transpose_f_f(mix.view(), mix.inputs, in.inputs(), in.row(), transposed.data(), transposed.row(),
                         rows, cols);
        ASSERT_TRUE(transposed.gaps_are_untouched());
        for (int32_t o = 0; o < outputs; ++o)
          for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < cols; ++j)
              ASSERT_EQ(transposed.at(o, j, i), out.at(o, i, j)) << k->name << ", output " << o;
      }
}
TEST(Mixtures, OutputsThatStartAlikeAreGrouped) {
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

TEST(Mixtures, SixtyFourComponentsAreTransposed) {
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

TEST(Mixtures, RoundsToTheNearestHalf) {
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

TEST(Mixtures, NaNStaysNaN) {
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
