#include "quatrain/nn/weight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/serialize.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <sstream>

#include "nn/reference.h"
#include "quatrain/nn/linear.h"

namespace quatrain::nn {
namespace {

TEST(NnWeight, HasTheNamesAndAxesItIsGiven) {
  struct Holder : torch::nn::Module {
  } holder;
  WeightOptions options;
  options.algebra = "phm(4)";
  options.in_features = 8;
  options.out_features = 12;
  options.kernel = {3, 2};
  options.name = "F";
  options.suffix = "_down";
  HypercomplexWeight weight;
  weight.make(holder, options);
  EXPECT_EQ(weight.key(), "F_down");
  EXPECT_TRUE(holder.named_parameters()["F_down"].is_same(weight.S));
  EXPECT_TRUE(holder.named_parameters()["A_down"].is_same(weight.A));
  EXPECT_EQ(weight.S.sizes(), (at::IntArrayRef{4, 3, 2, 3, 2}));
  const auto parts = weight.parts();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_FALSE(parts[0].decays);
  EXPECT_TRUE(parts[1].decays);
  EXPECT_EQ(parts[1].name, "F_down");

  // A multiplies the channels, whatever lies behind them.
  const at::Tensor H = weight.matrix().view({12, 8, 3, 2});
  const at::Tensor expected = test::expanded(weight.A, weight.S.select(4, 1).select(3, 2));
  EXPECT_LT(test::relative_error(H.select(3, 1).select(2, 2), expected), 1e-6);
  const at::Tensor before = weight.matrix().detach();
  weight.draw();
  EXPECT_LT(weight.set_nearest(before), 1e-3);
  EXPECT_LT(test::relative_error(weight.matrix(), before), 1e-3);
}

// In bfloat16 a step of training is within what rounding allows of A: factors are of A's very bits.
TEST(NnWeight, FactorsFitTheValuesTheyWereComputedFor) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  for (const auto dtype : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    Linear layer(LinearOptions(16, 16).algebra("phm(2)"));
    layer->to(dtype);
    layer->eval();
    ASSERT_TRUE(layer->factorize());
    EXPECT_TRUE(layer->has_factors());
    EXPECT_FALSE(layer->operands(false).product.factors.empty());
    layer->A.mul_(1.01);
    EXPECT_FALSE(layer->has_factors()) << dtype;
    EXPECT_TRUE(layer->operands(false).product.factors.empty());
  }
}

TEST(NnWeight, OutdatedFactorsDoNotComeBackInAnotherType) {
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  Linear layer(LinearOptions(16, 16).algebra("phm(2)"));
  ASSERT_TRUE(layer->factorize());
  layer->A.mul_(1.001);
  layer->to(torch::kBFloat16);
  EXPECT_FALSE(layer->has_factors());
}

// Operators take any table; what is stored beside weights, and what attends, takes n = 1 for the real
// numbers.
TEST(NnWeight, RefusesScalarsThatAreNotReal) {
  algebra::add("weight_test_one", 1, {1});
  EXPECT_EQ(Linear(LinearOptions(3, 2).algebra("weight_test_one"))->S.sizes(),
            (std::vector<int64_t>{1, 2, 3}));
  algebra::add("weight_test_two", 1, {2});
  EXPECT_THAT([] { Linear(LinearOptions(3, 2).algebra("weight_test_two")); },
              testing::ThrowsMessage<std::invalid_argument>(testing::HasSubstr("take real")));
}

TEST(NnWeight, LoadedWeightsMeetNoFactorsOfTheOldOnes) {
  torch::manual_seed(3);
  const torch::NoGradGuard no_grad;
  for (const char* algebra : {"phm(4)", "wkp(2)"}) {
    const auto options = LinearOptions(64, 64).algebra(algebra);
    Linear layer(options), other(options);
    layer->eval();
    const at::Tensor x = torch::randn({256, 64});
    ASSERT_TRUE(layer->factorize());
    layer(x);
    std::stringstream stream;
    torch::save(other, stream);
    torch::load(layer, stream);
    EXPECT_FALSE(layer->has_factors());
    EXPECT_LT(test::relative_error(layer(x), test::linear_reference(*layer, x)), 1e-4) << algebra;
    ASSERT_TRUE(layer->factorize());
    EXPECT_LT(test::relative_error(layer(x), test::linear_reference(*layer, x)), 1e-4) << algebra;
    ops::DecomposeOptions other_seed;
    other_seed.seed = 7;
    ASSERT_TRUE(layer->factorize(other_seed)) << "others of the same A";
    EXPECT_LT(test::relative_error(layer(x), test::linear_reference(*layer, x)), 1e-4) << algebra;
  }
}

}  // namespace
}  // namespace quatrain::nn
