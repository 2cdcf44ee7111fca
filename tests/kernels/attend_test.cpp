// One query over keys and values that lie anywhere, against plain loops in double precision.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>

#include "kernels/cpu/kernels.h"
#include "kernels/matrices.h"

namespace quatrain::kernels::cpu {
namespace {

// Keys and values lie anywhere, each in memory that ends with its last value.
TEST(Kernels, AttendIsSoftmaxOverKeysAnywhere) {
  std::mt19937 random(31);
  std::normal_distribution<float> normal;
  for (const Table* const* table = available(); *table; ++table) {
    const Table* k = *table;
    for (const auto& [maps, n] : {std::pair{1, 1}, std::pair{1, 4}, std::pair{4, 4}, std::pair{8, 8}})
      for (const int64_t heads : {1, 3, 8})
        for (const int64_t m : {1, 5, 16, 23, 64})
          for (const int64_t count : {1, 3, 17, 40}) {
            SCOPED_TRACE(std::string(k->name) + " " + std::to_string(maps) + " " + std::to_string(n) + " " +
                         std::to_string(heads) + " " + std::to_string(m) + " " + std::to_string(count));
            const int64_t head_apart = m + 1, apart = heads * head_apart + 3,
                          row = (count + 15) / 16 * 16 + 16, component = heads * m, y_apart = component + 2;
            const int64_t size = maps * n * component;
            const test::Fenced queries(sizeof(float) * static_cast<size_t>(size));
            float* const q = queries.end<float>() - size;
            std::generate_n(q, size, [&] { return 0.5F * normal(random); });
            const auto part = static_cast<size_t>((n - 1) * apart + (heads - 1) * head_apart + m);
            std::vector<std::unique_ptr<test::Fenced>> memory;
            std::vector<const float*> keys, values;
            for (int64_t s = 0; s < 2 * count; ++s) {
              memory.push_back(std::make_unique<test::Fenced>(sizeof(float) * part));
              float* const at = memory.back()->end<float>() - part;
              std::generate_n(at, part, [&] { return normal(random); });
              (s < count ? keys : values).push_back(at);
            }
            std::vector<float> weights(static_cast<size_t>(heads * maps * row)),
                y(static_cast<size_t>(n * y_apart), 7);
            const Attended attended{maps,
                                    n,
                                    heads,
                                    m,
                                    count,
                                    {keys.data(), apart, head_apart},
                                    {values.data(), apart, head_apart}};
            k->attend(attended, q, weights.data(), row, y.data(), y_apart);
            for (int64_t h = 0; h < heads; ++h)
              for (int64_t c = 0; c < n; ++c) {
                const int64_t map = maps == 1 ? 0 : c;
                std::vector<double> share(static_cast<size_t>(count));
                double total = 0;
                for (int64_t s = 0; s < count; ++s) {
                  double score = 0;
                  for (int64_t j = 0; j < n; ++j)
                    for (int64_t v = 0; v < m; ++v)
                      score += double{q[(map * n + j) * component + h * m + v]} *
                               double{keys[s][j * apart + h * head_apart + v]};
                  total += share[s] = std::exp(score);
                }
                for (int64_t v = 0; v < m; ++v) {
                  double expected = 0;
                  for (int64_t s = 0; s < count; ++s)
                    expected += share[s] / total * double{values[s][c * apart + h * head_apart + v]};
                  ASSERT_NEAR(y[c * y_apart + h * m + v], expected, 1e-5 * (1 + std::abs(expected)));
                }
                for (int64_t s = 0; s < count; ++s)
                  ASSERT_NEAR(weights[(h * maps + map) * row + s], share[s] / total, 1e-5);
                for (int64_t v = component; v < y_apart; ++v) ASSERT_EQ(y[c * y_apart + v], 7);
              }
          }
  }
}

}  // namespace
}  // namespace quatrain::kernels::cpu
