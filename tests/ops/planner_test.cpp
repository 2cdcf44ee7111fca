// The planner's choices, and that a call goes the way that was planned.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "ops/engine/planner.h"
#include "ops/reference.h"

namespace quatrain {
namespace {

using ops::Way;

/// The planned way; and the result must be, bit for bit, that of this way.
Way chosen(int64_t rows, int64_t width, const std::string& algebra, bool constant) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  const int64_t n = algebra::get(algebra).n();
  const at::Tensor x = torch::randn({rows, width}), S = torch::randn({n, width / n, width / n});
  const ops::Product product{algebra, {}, {}};
  const Way way = ops::planned_way(x, S, product, constant);
  const at::Tensor y = ops::linear(x, S, {}, product, Way::automatic, {}, constant);
  EXPECT_TRUE(torch::equal(y, ops::linear(x, S, {}, product, way, {}, constant)));
  ops::drop_prepared(S);
  return way;
}

TEST(Planner, LargeBatchesAreFactored) {
  EXPECT_EQ(chosen(1024, 1024, "quaternion", true), Way::factored);
  EXPECT_EQ(chosen(1024, 1024, "octonion", true), Way::factored);
  EXPECT_EQ(chosen(1024, 1024, "quaternion", false), Way::factored);
}

TEST(Planner, OneRowOfAWideLayerReadsTheWeightsOnce) {
  EXPECT_EQ(chosen(1, 2048, "quaternion", true), Way::mixed);
}

// The real output layer of a large vocabulary, and the layers of a decoder: their weights come from memory.
TEST(Planner, AFewRowsOfWeightsInMemoryReadTheLeast) {
  const Way dense = chosen(1024, 1024, "real", true);  // by the faster of two libraries
  EXPECT_TRUE(dense == Way::materialised || dense == Way::factored);
  EXPECT_EQ(chosen(4, 2048, "quaternion", true), Way::mixed);
  EXPECT_EQ(chosen(4, 2048, "real", true), Way::mixed);
  EXPECT_EQ(chosen(64, 2048, "real", true), dense);
  EXPECT_EQ(chosen(4, 512, "quaternion", true), Way::factored);
  EXPECT_EQ(chosen(4, 512, "real", true), dense);
  {
    const ops::TrafficGuard traffic(ops::Traffic{int64_t{1} << 27});
    EXPECT_EQ(chosen(4, 512, "quaternion", true), Way::mixed);
    EXPECT_EQ(chosen(4, 512, "real", true), Way::mixed);
    EXPECT_EQ(chosen(64, 512, "quaternion", true), Way::factored);
    EXPECT_EQ(chosen(64, 512, "quaternion", false), Way::factored);
    const ops::PlannedRowsGuard fixed(ops::PlannedRows{32});  // then nothing else decides
    EXPECT_EQ(chosen(4, 512, "quaternion", true), Way::factored);
  }
  EXPECT_EQ(chosen(4, 512, "quaternion", true), Way::factored);
}

// One product either way: that of the faster library, whichever this machine has.
TEST(Planner, ARealLayerTakesTheEnginesProductsWhereATensAreSlow) {
  const auto planned = [](int64_t rows, bool prepared, bool slow_dense) {
    ops::Problem problem;
    problem.rows = rows, problem.out_features = problem.in_features = 512, problem.rank = 1;
    problem.engine = true, problem.prepared = prepared, problem.slow_dense = slow_dense;
    return ops::plan(problem, Way::automatic);
  };
  for (const int64_t rows : {8, 32, 128, 1024})
    for (const bool prepared : {true, false}) {
      EXPECT_EQ(planned(rows, prepared, false), Way::materialised) << rows;
      EXPECT_EQ(planned(rows, prepared, true), Way::factored) << rows;
    }
  EXPECT_EQ(planned(1, true, true), Way::mixed);
}

TEST(Planner, AFewRowsOfARealLayerInBfloat16ReadTheLeastToo) {
  torch::NoGradGuard no_grad;
  torch::manual_seed(1);
  const at::Tensor x = torch::randn({4, 2048}).to(at::kBFloat16),
                   S = (torch::randn({1, 2048, 2048}) / 45).to(at::kBFloat16), bias = torch::randn({2048});
  const ops::Product real{"real", {}, {}};
  EXPECT_EQ(ops::planned_way(x, S, real, true), Way::mixed);
  EXPECT_EQ(ops::planned_way(x.repeat({64, 1}), S, real, true), Way::materialised);
  const at::Tensor y = ops::linear(x, S, bias, real, Way::automatic, {}, true),
                   expected = torch::linear(x.to(at::kDouble), S[0].to(at::kDouble), bias.to(at::kDouble));
  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  EXPECT_LT((y.to(at::kDouble) - expected).abs().max().item<double>(), 0.02);
}

TEST(Planner, SmallLayersOfManyProductsAreMaterialised) {
  EXPECT_EQ(chosen(8, 32, "sedenion", true), Way::materialised);
}

TEST(Planner, AGuardDecides) {
  const ops::WayGuard guard(Way::materialised);
  EXPECT_EQ(chosen(1024, 1024, "quaternion", true), Way::materialised);
}

}  // namespace
}  // namespace quatrain
