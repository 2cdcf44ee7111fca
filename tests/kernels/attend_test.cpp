// One query over keys and values that lie anywhere, against plain loops in double precision.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

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
      for (const int64_t heads : {1, 3, 8, 13})
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

// Heads are computed several at once; each has the bits that it has alone.
TEST(Kernels, AttendedHeadsDoNotDependOnEachOther) {
  constexpr int32_t kN = 4;
  constexpr int64_t kHeads = 13, kCount = 19, kRow = 32;
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const Table* const* table = available(); *table; ++table)
    for (const int32_t maps : {1, 4})
      for (const int64_t m : {5, 16, 32, 40}) {
        SCOPED_TRACE(std::string((*table)->name) + " " + std::to_string(maps) + " " + std::to_string(m));
        const int64_t component = kHeads * m, size = kN * component;
        const auto drawn = [&](int64_t count) {
          std::vector<float> values(static_cast<size_t>(count));
          std::generate(values.begin(), values.end(), [&] { return 0.5F * normal(random); });
          return values;
        };
        const std::vector<float> q = drawn(maps * size), memory = drawn(2 * kCount * size);
        // The keys and values of all heads, or of those from `head` on.
        const auto attended = [&](int64_t head, int64_t heads, const float* queries, float* y) {
          std::vector<const float*> keys, values;
          for (int64_t s = 0; s < kCount; ++s) {
            keys.push_back(memory.data() + 2 * s * size + head * m);
            values.push_back(memory.data() + (2 * s + 1) * size + head * m);
          }
          std::vector<float> weights(static_cast<size_t>(heads * maps * kRow));
          const Attended of{
              maps, kN, heads, m, kCount, {keys.data(), component, m}, {values.data(), component, m}};
          (*table)->attend(of, queries, weights.data(), kRow, y, heads * m);
          return weights;
        };
        std::vector<float> together(static_cast<size_t>(size)), alone(static_cast<size_t>(kN * m));
        const std::vector<float> weights = attended(0, kHeads, q.data(), together.data());
        for (int64_t head = 0; head < kHeads; ++head) {
          std::vector<float> of_head;
          for (int64_t row = 0; row < maps * kN; ++row) {
            const float* const from = q.data() + row * component + head * m;
            of_head.insert(of_head.end(), from, from + m);
          }
          const std::vector<float> own = attended(head, 1, of_head.data(), alone.data());
          for (int64_t i = 0; i < maps * kRow; ++i)
            ASSERT_EQ(own[static_cast<size_t>(i)], weights[static_cast<size_t>(head * maps * kRow + i)]);
          for (int64_t c = 0; c < kN; ++c)
            for (int64_t v = 0; v < m; ++v)
              ASSERT_EQ(alone[static_cast<size_t>(c * m + v)],
                        together[static_cast<size_t>(c * component + head * m + v)]);
        }
      }
}

}  // namespace
}  // namespace quatrain::kernels::cpu
