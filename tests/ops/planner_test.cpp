// The planner's choices, and that a call goes the way that was planned.

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <string>
#include <tuple>

#include "ops/engine/engine.h"
#include "ops/engine/planner.h"
#include "ops/engine/products.h"
#include "ops/reference.h"
#include "quatrain/conv_ops.h"

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
  // With AVX-512 the factored way reads as little, and multiplies less.
  const Way least =
      ops::engine::layout().few_rows >= 4 && ops::engine::takes_own_products() ? Way::factored : Way::mixed;
  EXPECT_EQ(chosen(4, 2048, "quaternion", true), least);
  EXPECT_EQ(chosen(4, 2048, "real", true), Way::mixed);
  EXPECT_EQ(chosen(64, 2048, "real", true), dense);
  EXPECT_EQ(chosen(4, 512, "quaternion", true), Way::factored);
  EXPECT_EQ(chosen(4, 512, "real", true), dense);
  {
    const ops::TrafficGuard traffic(ops::Traffic{int64_t{1} << 27});
    EXPECT_EQ(chosen(1, 512, "quaternion", true), Way::mixed);
    const int threads = at::get_num_threads();
    for (const int many : {1, 2, 4}) {
      at::set_num_threads(many);
      EXPECT_EQ(chosen(4, 512, "quaternion", true), least) << many;
    }
    at::set_num_threads(threads);
    EXPECT_EQ(chosen(4, 512, "real", true), Way::mixed);
    EXPECT_EQ(chosen(64, 512, "quaternion", true), Way::factored);
    EXPECT_EQ(chosen(64, 512, "quaternion", false), Way::factored);
    const ops::PlannedRowsGuard fixed(ops::PlannedRows{32});  // then nothing else decides
    EXPECT_EQ(chosen(4, 512, "quaternion", true), Way::factored);
  }
  EXPECT_EQ(chosen(4, 512, "quaternion", true), Way::factored);
}

// Mixtures of a learned algebra have no zeros: mixing the weights costs as much as it saves.
TEST(Planner, AFewRowsOfALearnedLayerInMemoryAreMixed) {
  ops::Problem problem;
  problem.rows = 4, problem.n = 4, problem.rank = 8, problem.in_features = problem.out_features = 512;
  problem.engine = problem.prepared = problem.learned = true, problem.traffic = int64_t{1} << 27;
  EXPECT_EQ(ops::plan(problem, Way::automatic), Way::mixed);
}

// A few rows are multiplied as they are there, where products with H would need 32 of them.
TEST(Planner, RowsThatStandAloneAreNotFilledUp) {
  ops::Problem problem;
  problem.rows = 32, problem.engine = problem.prepared = true;
  for (const auto& [n, rank, width] : {std::tuple{1, 1, 16}, {1, 1, 512}, {8, 30, 64}}) {
    problem.n = n, problem.in_features = problem.out_features = width;
    problem.rank = rank, problem.alone = false;
    EXPECT_EQ(ops::plan(problem, Way::automatic), Way::materialised) << n << ", " << width;
    problem.alone = true;
    EXPECT_NE(ops::plan(problem, Way::automatic), Way::materialised) << n << ", " << width;
    EXPECT_EQ(ops::plan(problem, Way::materialised), Way::materialised);
    problem.rank = 0;  // no factors
    EXPECT_NE(ops::plan(problem, Way::automatic), Way::factored) << n << ", " << width;
  }
}

// The ways under a guard, and what they are for: a row's bits are the same however many rows there are.
TEST(Planner, RowsOfAGuardStandAlone) {
  if (ops::instruction_sets().front() == "baseline") GTEST_SKIP() << "products have the bits of MKL's";
  const torch::NoGradGuard no_grad;
  const ops::PlannedRowsGuard guard(ops::PlannedRows{32});
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  for (const std::string algebra : {"real", "quaternion", "octonion"})
    for (const int64_t width : {32, 88, 256}) {
      torch::manual_seed(3);
      const int64_t n = algebra::get(algebra).n();
      const at::Tensor x = torch::randn({100, width}), S = torch::randn({n, width / n, width / n}),
                       bias = torch::randn({width});
      const ops::Product product{algebra, {}, {}};
      EXPECT_NE(ops::planned_way(x, S, product, true), Way::materialised) << algebra << ", " << width;
      const auto of = [&](int64_t rows) {
        return ops::linear(x.narrow(0, 100 - rows, rows), S, bias, product, Way::automatic, {}, true);
      };
      const at::Tensor all = of(100);
      for (int64_t rows = 1; rows < 100; ++rows)
        ASSERT_TRUE(of(rows).equal(all.narrow(0, 100 - rows, rows)))
            << algebra << ", " << width << ", " << rows;
      ops::drop_prepared(S);
    }
  at::set_num_threads(threads);
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

TEST(Planner, Convolutions) {
  using ops::Winograd;
  const auto planned = [](const std::function<void(ops::ConvolutionProblem&)>& change,
                          Way way = Way::automatic, Winograd winograd = Winograd::automatic) {
    ops::ConvolutionProblem p{
        .n = 4, .units_in = 32, .units_out = 32, .planes = 16, .height = 16, .width = 16};
    p.fits_winograd = p.engine = true;
    change(p);
    const ops::ConvolutionPlan plan = ops::plan(p, way, winograd);
    return std::pair(plan.way, plan.tile);
  };
  const auto is = [](Way way, int64_t tile) { return std::pair(way, tile); };
  const auto H = is(Way::materialised, 0);
  EXPECT_EQ(planned([](auto&) {}), is(Way::factored, 2));
  EXPECT_EQ(planned([](auto& p) { p.n = 1; }), H);
  EXPECT_EQ(planned([](auto& p) { p.width = 2048; }), is(Way::factored, 2));
  EXPECT_EQ(planned([](auto& p) { p.width = 2050; }), is(Way::factored, 0));
  EXPECT_EQ(planned([](auto& p) { p.width = 2050; }, Way::automatic, Winograd::f2), is(Way::factored, 2));
  EXPECT_EQ(planned([](auto& p) { p.units_in = 8; }), H);
  EXPECT_EQ(planned([](auto& p) { p.units_out = 9; }), is(Way::factored, 2));
  EXPECT_EQ(planned([](auto& p) { p.units_out = 9, p.gives_A = true; }), H);
  EXPECT_EQ(planned([](auto& p) { p.fast_dense = true; }), is(Way::factored, 2));
  EXPECT_EQ(planned([](auto& p) { p.fast_dense = p.gives_A = true; }), H);
  EXPECT_EQ(planned([](auto& p) { p.fits_winograd = false; }), is(Way::factored, 0));
  EXPECT_EQ(planned([](auto& p) { p.height = p.width = 1; }), is(Way::factored, 0));  // a tile of four pixels
  EXPECT_EQ(planned([](auto& p) { p.less_precision = true; }), is(Way::factored, 4));
  EXPECT_EQ(planned([](auto& p) { p.less_precision = true, p.height = 4; }), is(Way::factored, 2));
  EXPECT_EQ(planned([](auto& p) { p.less_precision = true, p.width = 4; }), is(Way::factored, 2));
  // What is asked for.
  EXPECT_EQ(planned([](auto&) {}, Way::materialised), H);
  EXPECT_EQ(planned([](auto&) {}, Way::mixed), H);
  EXPECT_EQ(planned([](auto& p) { p.units_in = 1; }, Way::factored), is(Way::factored, 2));
  EXPECT_EQ(planned([](auto&) {}, Way::automatic, Winograd::none), is(Way::factored, 0));
  EXPECT_EQ(planned([](auto&) {}, Way::automatic, Winograd::f4), is(Way::factored, 4));
  EXPECT_EQ(planned([](auto& p) { p.fits_winograd = false; }, Way::factored, Winograd::f2),
            is(Way::factored, 0));
  // Tiles that are asked for are taken by real layers too, where they pay.
  const auto real = [](ops::ConvolutionProblem& p) { p.n = 1; };
  EXPECT_EQ(planned(real, Way::automatic, Winograd::f4), is(Way::factored, 4));
  EXPECT_EQ(planned(real, Way::factored), is(Way::factored, 2));
  EXPECT_EQ(planned(real, Way::automatic, Winograd::none), H);
  EXPECT_EQ(planned(real, Way::materialised, Winograd::f2), H);
  EXPECT_EQ(planned([&](auto& p) { real(p), p.fits_winograd = false; }, Way::automatic, Winograd::f2), H);
  EXPECT_EQ(planned([&](auto& p) { real(p), p.units_in = 9; }, Way::automatic, Winograd::f2),
            is(Way::factored, 2));
  EXPECT_EQ(planned([&](auto& p) { real(p), p.units_in = 8; }, Way::automatic, Winograd::f2), H);
  EXPECT_EQ(planned([](auto& p) { p.units_in = 8; }, Way::automatic, Winograd::f2), H);
  // Without the engine, in float64 and in other types.
  const auto doubles = [](ops::ConvolutionProblem& p) { p.engine = false, p.plain_products = true; };
  EXPECT_EQ(planned(doubles), is(Way::factored, 2));
  EXPECT_EQ(planned([&](auto& p) { doubles(p), p.planes = 4; }), is(Way::factored, 0));
  EXPECT_EQ(planned([&](auto& p) { doubles(p), p.planes = 4; }, Way::automatic, Winograd::f2),
            is(Way::factored, 2));
  EXPECT_EQ(planned([&](auto& p) { doubles(p), p.units_in = 12; }), H);
  EXPECT_EQ(planned([&](auto& p) { doubles(p), p.axes = 3; }), H);
  EXPECT_EQ(planned([&](auto& p) { doubles(p), p.gives_A = true; }), H);
  EXPECT_EQ(planned([&](auto& p) { doubles(p), p.n = 1; }, Way::automatic, Winograd::f2),
            is(Way::factored, 2));
  EXPECT_EQ(planned([&](auto& p) { doubles(p), p.gives_A = true; }, Way::automatic, Winograd::f2), H);
  EXPECT_EQ(planned([](auto& p) { p.engine = false; }), H);
  EXPECT_EQ(planned([](auto& p) { p.engine = false; }, Way::automatic, Winograd::f2), H);
  for (const Winograd asked : {Winograd::automatic, Winograd::f2})  // transforms would be rounded in float16
    EXPECT_EQ(planned([](auto& p) { p.engine = false; }, Way::factored, asked), is(Way::factored, 0));
}

TEST(Planner, AGuardDecides) {
  const ops::WayGuard guard(Way::materialised);
  EXPECT_EQ(chosen(1024, 1024, "quaternion", true), Way::materialised);
}

}  // namespace
}  // namespace quatrain
