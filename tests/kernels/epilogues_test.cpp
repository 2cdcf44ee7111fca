// What ends a product, in every table: values against double precision, and no byte beside them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cpu/kernels.h"

namespace quatrain::kernels::cpu {
namespace {

double wanted(double y, Activation activation) {
  switch (activation) {
    case Activation::relu:
      return std::max(y, 0.0);
    case Activation::tanh:
      return std::tanh(y);
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-y));
    default:
      return y;
  }
}

constexpr Activation kAll[] = {Activation::identity, Activation::relu, Activation::tanh, Activation::sigmoid};

TEST(Epilogues, FinishEverySize) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  constexpr int64_t kRows = 3, kApart = 120;
  const auto draw = [&](size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = 2 * normal(random);
    return values;
  };
  for (const Table* const* table = available(); *table; ++table)
    for (const int64_t cols : {0, 1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100})
      for (const Activation activation : kAll)
        for (int parts = 0; parts < 8; ++parts) {
          const auto before = draw(kRows * kApart), scale = draw(100), bias = draw(100),
                     residual = draw(kRows * 110);
          auto y = before;
          (*table)->finish(y.data(), kApart, kRows, cols, parts & 1 ? scale.data() : nullptr,
                           parts & 2 ? bias.data() : nullptr, parts & 4 ? residual.data() : nullptr, 110,
                           activation);
          for (int64_t row = 0; row < kRows; ++row)
            for (int64_t col = 0; col < kApart; ++col) {
              const auto at = static_cast<size_t>(row * kApart + col), c = static_cast<size_t>(col);
              if (col >= cols) {
                ASSERT_EQ(y[at], before[at]) << (*table)->name << " wrote beside " << cols << " columns";
                continue;
              }
              double value = before[at];
              if (parts & 1) value *= scale[c];
              if (parts & 2) value += bias[c];
              if (parts & 4) value += residual[static_cast<size_t>(row * 110 + col)];
              // The sums are rounded before a function is taken of them.
              ASSERT_NEAR(y[at], wanted(value, activation), 2e-6 * (1 + std::abs(value)))
                  << (*table)->name << ", " << cols << " columns, parts " << parts;
            }
        }
}

TEST(Epilogues, FunctionsAreExactToAFewUnits) {
  std::vector<float> values;
  for (float x = 1e-6F; x < 80; x *= 1.01F) values.insert(values.end(), {x, -x});
  while (values.size() % 16) values.push_back(0);
  for (const Table* const* table = available(); *table; ++table)
    for (const Activation activation : {Activation::tanh, Activation::sigmoid}) {
      auto y = values;
      (*table)->finish(y.data(), 0, 1, static_cast<int64_t>(y.size()), nullptr, nullptr, nullptr, 0,
                       activation);
      for (size_t i = 0; i < y.size(); ++i) {
        const double right = wanted(values[i], activation);
        if (std::abs(right) < 1e-30) continue;
        ASSERT_NEAR(y[i] / (right == 0 ? 1 : right), right == 0 ? 0 : 1, 4 * 1.2e-7)
            << (*table)->name << " at " << values[i];
      }
    }
}

TEST(Epilogues, NaNAndInfinity) {
  const float infinite = std::numeric_limits<float>::infinity();
  for (const Table* const* table = available(); *table; ++table) {
    const auto of = [&](float x, Activation activation) {
      (*table)->finish(&x, 1, 1, 1, nullptr, nullptr, nullptr, 0, activation);
      return x;
    };
    for (const Activation activation : kAll) EXPECT_TRUE(std::isnan(of(NAN, activation))) << (*table)->name;
    EXPECT_EQ(of(infinite, Activation::tanh), 1);
    EXPECT_EQ(of(-infinite, Activation::tanh), -1);
    EXPECT_EQ(of(infinite, Activation::sigmoid), 1);
    EXPECT_EQ(of(-infinite, Activation::sigmoid), 0);
    EXPECT_EQ(of(infinite, Activation::relu), infinite);
  }
}

}  // namespace
}  // namespace quatrain::kernels::cpu
