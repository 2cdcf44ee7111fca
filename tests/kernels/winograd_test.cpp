// Winograd's transforms of every table against the definition: the output of a product of transforms is the
// correlation, and the transforms of gradients are transposes.

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "kernels/cpu/kernels.h"

namespace quatrain::kernels::cpu {
namespace {

struct Values {
  int64_t side, count;
  std::vector<float> values;
  std::vector<const float*> in;
  std::vector<float*> out;
  Values(int64_t side_, int64_t count_)
      : side(side_), count(count_), values(static_cast<size_t>(side_ * side_ * (count_ + 3)), -7) {
    for (int64_t i = 0; i < side * side; ++i) {
      out.push_back(values.data() + i * (count + 3));
      in.push_back(out.back());
    }
  }
  Square<const float> from() const { return {in.data(), side, 0, 0}; }
  Square<float> to() const { return {out.data(), side, 0, 0}; }
  float& at(int64_t place, int64_t q) { return out[static_cast<size_t>(place)][q]; }
  void fill(std::mt19937& random) {
    std::uniform_real_distribution<float> draw(-1, 1);
    for (int64_t i = 0; i < side * side; ++i)
      for (int64_t q = 0; q < count; ++q) at(i, q) = draw(random);
  }
  double inner(Values& other) {
    double sum = 0;
    for (int64_t i = 0; i < side * side; ++i)
      for (int64_t q = 0; q < count; ++q) sum += double{at(i, q)} * other.at(i, q);
    return sum;
  }
};

TEST(WinogradKernel, ARowOfTilesIsItsTiles) {
  std::mt19937 random(1);
  for (const Table* const* table = available(); *table; ++table)
    for (const int64_t m : {2, 4}) {
      SCOPED_TRACE(std::string((*table)->name) + ", m = " + std::to_string(m));
      const int64_t t = m + 2, tiles = 3, parts = 2, count = 21, side = tiles * m + 2, units = parts * count;
      Values pixels(side, units), together(t, tiles * units), apart(t, tiles * units);
      pixels.fill(random);
      const Square<const float> from{pixels.in.data(), side, 0, count, m};
      (*table)->winograd(m, WinogradStep::input, from, {together.out.data(), t, 0, count, 0, units}, tiles,
                         parts, count, nullptr);
      for (int64_t i = 0; i < tiles; ++i)
        (*table)->winograd(m, WinogradStep::input, {pixels.in.data() + i * m, side, 0, count},
                           {apart.out.data(), t, i * units, count}, 1, parts, count, nullptr);
      EXPECT_EQ(together.values, apart.values);
      Values results(tiles * m, units), alone(tiles * m, units), bias(1, units);
      bias.fill(random);
      (*table)->winograd(m, WinogradStep::output, {together.in.data(), t, 0, count, 0, units},
                         {results.out.data(), tiles * m, 0, count, m}, tiles, parts, count, bias.in[0]);
      for (int64_t i = 0; i < tiles; ++i)
        (*table)->winograd(m, WinogradStep::output, {together.in.data(), t, i * units, count},
                           {alone.out.data() + i * m, tiles * m, 0, count}, 1, parts, count, bias.in[0]);
      EXPECT_EQ(results.values, alone.values);
    }
}

TEST(WinogradKernel, IsACorrelation) {
  std::mt19937 random(1);
  for (const Table* const* table = available(); *table; ++table)
    for (const int64_t m : {2, 4})
      for (const int64_t count : {1, 5, 16, 37}) {
        SCOPED_TRACE(std::string((*table)->name) + ", m = " + std::to_string(m) + ", " +
                     std::to_string(count));
        const int64_t t = m + 2;
        Values tile(t, count), weight(3, count), d(t, count), w(t, count), y(m, count), bias(1, count);
        tile.fill(random), weight.fill(random), bias.fill(random);
        (*table)->winograd(m, WinogradStep::input, tile.from(), d.to(), 1, 1, count, nullptr);
        (*table)->winograd(m, WinogradStep::weight, weight.from(), w.to(), 1, 1, count, nullptr);
        for (int64_t i = 0; i < t * t; ++i)
          for (int64_t q = 0; q < count; ++q) d.at(i, q) *= w.at(i, q);
        (*table)->winograd(m, WinogradStep::output, d.from(), y.to(), 1, 1, count, bias.in[0]);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < m; ++j)
            for (int64_t q = 0; q < count; ++q) {
              double expected = bias.at(0, q);
              for (int64_t u = 0; u < 3; ++u)
                for (int64_t v = 0; v < 3; ++v)
                  expected += double{tile.at((i + u) * t + j + v, q)} * weight.at(u * 3 + v, q);
              ASSERT_NEAR(y.at(i * m + j, q), expected, m == 2 ? 3e-6 : 2e-5);
            }
        for (int64_t i = 0; i < m * m; ++i)
          ASSERT_EQ(y.out[static_cast<size_t>(i)][count], -7);  // nothing beyond
      }
}

TEST(WinogradKernel, GradientsAreTransposes) {
  std::mt19937 random(2);
  for (const Table* const* table = available(); *table; ++table)
    for (const int64_t m : {2, 4}) {
      SCOPED_TRACE(std::string((*table)->name) + ", m = " + std::to_string(m));
      const int64_t t = m + 2, count = 21;
      Values small(m, count), big(t, count), to_big(t, count), to_small(m, count);
      small.fill(random), big.fill(random);
      (*table)->winograd(m, WinogradStep::output_back, small.from(), to_big.to(), 1, 1, count, nullptr);
      (*table)->winograd(m, WinogradStep::output, big.from(), to_small.to(), 1, 1, count, nullptr);
      EXPECT_NEAR(to_big.inner(big), to_small.inner(small), 1e-3);
      Values weight(3, count), to_weight(3, count);
      weight.fill(random);
      (*table)->winograd(m, WinogradStep::weight, weight.from(), to_big.to(), 1, 1, count, nullptr);
      (*table)->winograd(m, WinogradStep::weight_back, big.from(), to_weight.to(), 1, 1, count, nullptr);
      EXPECT_NEAR(to_big.inner(big), to_weight.inner(weight), 1e-4);
    }
}

}  // namespace
}  // namespace quatrain::kernels::cpu
