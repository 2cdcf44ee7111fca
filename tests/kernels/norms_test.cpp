// Norms of rows in every table: values against double precision, and no byte beside them.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "kernels/tables.h"

namespace quatrain::kernels::cpu {
namespace {

using test::sizes;
using test::tables;

TEST(Norms, EachPartHasItsOwnMeanAndVariance) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  constexpr float kEps = 1e-5F, kUntouched = 17;
  for (const Table* k : tables())
    for (const int64_t width : sizes())
      for (const int64_t parts : {1, 4}) {
        if (width == 0) continue;
        const auto count = static_cast<size_t>(parts * width);
        const auto draw = [&](float scale, float offset) {
          std::vector<float> values(count);
          for (float& value : values) value = scale * normal(random) + offset;
          return values;
        };
        auto x = draw(3, 5);
        const auto weight = draw(1, 0), bias = draw(1, 0), before = x;
        std::vector<float> y(count + 1, kUntouched);
        k->layer_norm(x.data(), y.data(), parts, width, weight.data(), bias.data(), kEps);
        EXPECT_EQ(y.back(), kUntouched) << k->name << " wrote beside " << width;
        k->layer_norm(x.data(), x.data(), parts, width, weight.data(), bias.data(), kEps);
        for (size_t part = 0; part < static_cast<size_t>(parts); ++part) {
          const size_t first = part * static_cast<size_t>(width), end = first + static_cast<size_t>(width);
          double mean = 0, variance = 0;
          for (size_t i = first; i < end; ++i) mean += before[i] / static_cast<double>(width);
          for (size_t i = first; i < end; ++i)
            variance += (before[i] - mean) * (before[i] - mean) / static_cast<double>(width);
          for (size_t i = first; i < end; ++i) {
            const double right = (before[i] - mean) / std::sqrt(variance + kEps) * weight[i] + bias[i];
            // A few values may lie close together, which magnifies what their mean is rounded by.
            ASSERT_NEAR(y[i], right, width < 8 ? 2e-4 : 1e-5) << k->name << ", " << width << " values";
            ASSERT_EQ(x[i], y[i]) << "in place";
          }
        }
      }
}

TEST(Norms, NaNAndInfinityStayVisible) {
  for (const Table* k : tables())
    for (const float bad : {NAN, INFINITY}) {
      std::vector<float> x(37, 1.0F), weight(37, 1.0F), bias(37);
      x[36] = bad;
      k->layer_norm(x.data(), x.data(), 1, 37, weight.data(), bias.data(), 1e-5F);
      EXPECT_TRUE(std::isnan(x[0])) << k->name;
    }
}

}  // namespace
}  // namespace quatrain::kernels::cpu
