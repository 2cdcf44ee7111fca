// What the planner's choices show from outside: the ways differ in their last bits, so a choice can be
// recognised.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "ops/reference.h"

namespace quatrain {
namespace {

using ops::Way;

/// The ways whose result is bit for bit that of the planner's choice.
std::vector<Way> chosen(int64_t rows, int64_t width, const std::string& algebra, bool constant) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  const int64_t n = algebra::get(algebra).n();
  const at::Tensor x = torch::randn({rows, width}), S = torch::randn({n, width / n, width / n});
  const ops::Product product{algebra, {}, {}};
  const at::Tensor y = ops::linear(x, S, {}, product, Way::automatic, {}, constant);
  std::vector<Way> ways;
  for (const Way way : test::all_ways())
    if (torch::equal(y, ops::linear(x, S, {}, product, way, {}, constant))) ways.push_back(way);
  ops::drop_prepared(S);
  return ways;
}

TEST(Planner, LargeBatchesAreFactored) {
  EXPECT_EQ(chosen(1024, 1024, "quaternion", true), std::vector{Way::factored});
  EXPECT_EQ(chosen(1024, 1024, "octonion", true), std::vector{Way::factored});
  EXPECT_EQ(chosen(1024, 1024, "quaternion", false), std::vector{Way::factored});
}

TEST(Planner, OneRowOfAWideLayerReadsTheWeightsOnce) {
  EXPECT_EQ(chosen(1, 2048, "quaternion", true), std::vector{Way::mixed});
}

TEST(Planner, SmallLayersAreMaterialised) {
  EXPECT_EQ(chosen(4, 32, "quaternion", true), std::vector{Way::materialised});
}

}  // namespace
}  // namespace quatrain
