// The order in which a thread reads weights, which decides what is fetched and no value.

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "ops/engine/next_weights.h"

namespace quatrain::ops::engine {
namespace {

/// What is expected after each of some weights, in their turn.
std::vector<const void*> after_each(const std::vector<const void*>& turns) {
  std::vector<const void*> found;
  for (const void* weights : turns) found.push_back(next_weights(weights));
  return found;
}

TEST(NextWeights, AreThoseOfTheLastRound) {
  std::array<float, 4> memory{};
  const void *const a = memory.data(), *const b = memory.data() + 1, *const c = memory.data() + 2,
                    *const d = memory.data() + 3;
  std::thread([&] {
    after_each({a, b, c});
    EXPECT_EQ(after_each({a, b, c}), (std::vector{b, c, a}));
    // Another order is known a round later, and so is a layer that is applied again and again.
    after_each({a, d, c});
    EXPECT_EQ(after_each({a, d, c}), (std::vector{d, c, a}));
    after_each({a, a});
    EXPECT_EQ(after_each({a, a}), (std::vector{a, a}));
  }).join();
}

TEST(NextWeights, EachThreadHasItsOwn) {
  std::array<float, 2> memory{};
  const void *const a = memory.data(), *const b = memory.data() + 1;
  std::thread([&] { after_each({a, b, a, b}); }).join();
  std::thread([&] {
    EXPECT_EQ(next_weights(a), nullptr);
    EXPECT_EQ(next_weights(b), nullptr);
  }).join();
}

// Far more weights than are remembered: each is either known or not, never taken for another.
TEST(NextWeights, ManyMayBeForgotten) {
  std::vector<float> memory(100000);
  std::thread([&] {
    std::vector<const void*> turns;
    for (const float& each : memory) turns.push_back(&each);
    after_each(turns);
    const std::vector<const void*> found = after_each(turns);
    for (size_t i = 0; i < turns.size(); ++i)
      EXPECT_TRUE(found[i] == nullptr || found[i] == turns[(i + 1) % turns.size()]) << i;
  }).join();
}

}  // namespace
}  // namespace quatrain::ops::engine
