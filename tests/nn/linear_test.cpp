#include "quatrain/nn/linear.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim.h>
#include <torch/serialize.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <sstream>

#include "nn/reference.h"
#include "quatrain/nn/activation.h"
#include "quatrain/nn/dropout.h"
#include "quatrain/nn/norm.h"

namespace quatrain {
namespace {

using test::linear_reference;
using test::relative_error;

const std::vector<std::string> kAlgebras{"real",
                                         "complex",
                                         "quaternion",
                                         "octonion",
                                         "dual",
                                         "clifford(2,1)",
                                         "phm(3)",
                                         "phm(quaternion)",
                                         "phm(identity(4))",
                                         "phm(1)",
                                         "wkp(4)",
                                         "wkp(complex)",
                                         "phm(4, trained_rank=3)",
                                         "phm(quaternion, trained_rank=9)"};

std::vector<ops::Way> ways_of(const nn::LinearImpl& layer) {
  if (layer.A.defined()) return {ops::Way::mixed, ops::Way::materialised};
  return test::all_ways();
}

std::vector<std::string> names_of(const torch::nn::Module& module) {
  std::vector<std::string> names;
  for (const auto& item : module.named_parameters()) names.push_back(item.key());
  return names;
}

TEST(NnLinear, EqualsTheExpandedMatrix) {
  torch::manual_seed(0);
  for (const std::string& algebra : kAlgebras) {
    const test::DefaultDtype guard(torch::kDouble);
    nn::Linear layer(nn::LinearOptions(48, 24).algebra(algebra));
    {
      const torch::NoGradGuard no_grad;
      layer->bias.normal_();
      if (layer->w.defined()) layer->w.normal_();
    }
    for (const bool training : {true, false})
      for (const ops::Way way : ways_of(*layer)) {
        const ops::WayGuard forced(way);
        layer->train(training);
        for (const auto& sizes : std::vector<std::vector<int64_t>>{{48}, {5, 48}, {2, 3, 48}, {0, 48}}) {
          const at::Tensor x = torch::randn(sizes);
          EXPECT_LT(relative_error(layer(x), linear_reference(*layer, x)), 1e-12)
              << algebra << " " << ops::name(way) << " training " << training;
        }
      }
    EXPECT_LT(relative_error(layer->matrix(), test::expanded(test::structure_of(*layer), layer->S)), 1e-12);
  }
}

TEST(NnLinear, ParametersAreThoseOfTheSpec) {
  using testing::ElementsAre;
  const auto names = [](const char* algebra) {
    return names_of(*nn::Linear(nn::LinearOptions(24, 48).algebra(algebra)));
  };
  EXPECT_THAT(names("real"), ElementsAre("S", "bias"));
  EXPECT_THAT(names("phm(1)"), ElementsAre("S", "bias"));
  EXPECT_THAT(names("quaternion"), ElementsAre("S", "bias"));
  EXPECT_THAT(names("phm(4)"), ElementsAre("A", "S", "bias"));
  EXPECT_THAT(names("wkp(4)"), ElementsAre("A", "w", "S", "bias"));
  EXPECT_THAT(names("phm(4, trained_rank=5)"), ElementsAre("factors", "S", "bias"));
  const nn::Linear layer(nn::LinearOptions(24, 48).algebra("phm(4)").bias(false));
  EXPECT_THAT(names_of(*layer), ElementsAre("A", "S"));
  EXPECT_EQ(layer->S.sizes(), (std::vector<int64_t>{4, 12, 6}));
  EXPECT_EQ(layer->A.sizes(), (std::vector<int64_t>{4, 4, 4}));
}

TEST(NnLinear, OneComponentIsTorchLinear) {
  for (const char* algebra : {"real", "phm(1)"}) {
    nn::Linear ours(nn::LinearOptions(7, 5).algebra(algebra));
    torch::nn::Linear theirs(7, 5);
    const torch::NoGradGuard no_grad;
    ours->S.copy_(theirs->weight.unsqueeze(0));
    ours->bias.copy_(theirs->bias);
    const at::Tensor x = torch::randn({3, 7});
    EXPECT_TRUE(torch::allclose(ours(x), theirs(x), 1e-6, 1e-6));
    const ops::WayGuard dense(ops::Way::materialised);  // the planner may take another library's product
    EXPECT_TRUE(torch::equal(ours(x), theirs(x)));
  }
}

TEST(NnLinear, RefusesSizesThatNDoesNotDivide) {
  const auto message = [](int64_t in, int64_t out) -> std::string {
    try {
      nn::Linear layer(nn::LinearOptions(in, out).algebra("quaternion"));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(510, 8), "linear: in_features must be divisible by n = 4, got 510 (nearest: 508, 512)");
  EXPECT_EQ(message(8, 3), "linear: out_features must be divisible by n = 4, got 3 (nearest: 4)");
  EXPECT_EQ(message(0, 8), "linear: in_features must be positive, got 0");
}

TEST(NnLinear, GradientsReachEveryParameter) {
  for (const std::string& algebra : kAlgebras) {
    nn::Linear layer(nn::LinearOptions(24, 24).algebra(algebra));
    layer(torch::randn({5, 24})).square().sum().backward();
    for (const auto& item : layer->named_parameters())
      EXPECT_GT(item->grad().abs().sum().item<double>(), 0) << algebra << " " << item.key();
  }
}

TEST(NnLinear, CloneIsDeep) {
  for (const char* algebra : {"quaternion", "phm(4)", "wkp(4)"}) {
    nn::Linear layer(nn::LinearOptions(8, 8).algebra(algebra));
    layer->eval();
    const auto copy = std::dynamic_pointer_cast<nn::LinearImpl>(layer->clone());
    const at::Tensor x = torch::randn({3, 8}), before = layer(x);
    EXPECT_FALSE(copy->is_training());
    EXPECT_TRUE(torch::equal(copy->forward(x), before));
    {
      const torch::NoGradGuard no_grad;
      for (const at::Tensor& parameter : copy->parameters()) parameter.add_(1);
    }
    EXPECT_TRUE(torch::equal(layer(x), before));
    EXPECT_FALSE(torch::allclose(copy->forward(x), before));
  }
}

TEST(NnLinear, FactorsOfALearnedTensorServeEvalModeOnly) {
  torch::manual_seed(1);
  const test::DefaultDtype guard(torch::kDouble);
  for (const char* algebra : {"phm(2)", "phm(4)", "phm(quaternion)", "wkp(4)"}) {
    nn::Linear layer(nn::LinearOptions(16, 24).algebra(algebra).way(ops::Way::factored));
    if (layer->w.defined()) {
      const torch::NoGradGuard no_grad;
      layer->w.uniform_(0.5, 1.5);
    }
    const at::Tensor x = torch::randn({6, 16});
    EXPECT_FALSE(layer->has_factors());
    ASSERT_TRUE(layer->factorize()) << algebra;
    EXPECT_TRUE(layer->has_factors());
    EXPECT_TRUE(layer->buffers().empty());
    EXPECT_ANY_THROW(layer(x)) << "training has no factors";
    layer->eval();
    for (int repeat = 0; repeat < 2; ++repeat) {  // the second call finds the prepared form
      EXPECT_LT(relative_error(layer(x), linear_reference(*layer, x)), 1e-5) << algebra;
      const torch::NoGradGuard no_grad;
      EXPECT_LT(relative_error(layer(x), linear_reference(*layer, x)), 1e-5) << algebra;
    }

    const auto copy = std::dynamic_pointer_cast<nn::LinearImpl>(layer->clone());
    EXPECT_TRUE(copy->has_factors());
    copy->to(torch::kFloat);
    EXPECT_TRUE(copy->has_factors());
    const auto rounded = std::dynamic_pointer_cast<nn::LinearImpl>(copy->clone());
    rounded->to(torch::kBFloat16);
    EXPECT_TRUE(rounded->has_factors()) << "rounding to bfloat16 is within its tolerance";
    rounded->to(torch::kFloat);
    const bool kept_all = layer->A.to(torch::kBFloat16).to(torch::kDouble).equal(layer->A);  // a table's ones
    EXPECT_EQ(rounded->has_factors(), kept_all) << "float32 answers have the digits of float32";

    const torch::NoGradGuard no_grad;
    layer->A[0][1][0] += 1e-6;  // a step of gradcheck
    EXPECT_FALSE(layer->has_factors());
    EXPECT_ANY_THROW(layer(x)) << "stale factors are not used";
    EXPECT_TRUE(copy->has_factors()) << "the copy's state is its own";
  }
}

TEST(NnLinear, FactorsLeaveTheGradientsAlone) {
  torch::manual_seed(2);
  const test::DefaultDtype guard(torch::kDouble);
  nn::Linear layer(nn::LinearOptions(8, 12).algebra("phm(4)").way(ops::Way::factored));
  ASSERT_TRUE(layer->factorize());
  layer->eval();
  const at::Tensor x = torch::randn({5, 8});
  layer(x).square().sum().backward();
  const at::Tensor H = torch::einsum("iab,ipq->apbq", {layer->A, layer->S}).reshape({12, 8});
  const auto expected =
      torch::autograd::grad({torch::linear(x, H, layer->bias).square().sum()}, layer->parameters());
  for (size_t p = 0; p < expected.size(); ++p)
    EXPECT_LT(relative_error(layer->parameters()[p].grad(), expected[p]), 1e-4);
}

TEST(NnLinear, TrainedFactorsStartWhereTheyAreTold) {
  torch::manual_seed(3);
  at::Tensor identity = torch::zeros({4, 4, 4}, torch::kDouble);
  identity[0] = torch::eye(4);
  const auto start = [](const std::string& algebra) {
    return test::structure_of(*nn::Linear(nn::LinearOptions(8, 8).algebra(algebra)));
  };
  for (const char* rank : {"8", "9", "16"}) {
    const std::string end = std::string(", trained_rank=") + rank + ")";
    EXPECT_LT(relative_error(start("phm(quaternion" + end), test::table_of("quaternion")), 1e-6);
    EXPECT_LT(relative_error(start("phm(identity(4)" + end), identity), 1e-6);
  }
  // Products beyond those of the start can be learned: not all three of their factors are zero.
  nn::Linear layer(nn::LinearOptions(8, 8).algebra("phm(quaternion, trained_rank=9)"));
  layer(torch::randn({5, 8})).square().sum().backward();
  EXPECT_GT(layer->factors.grad()[2].select(1, 8).abs().sum().item<double>(), 0);
}

// A layer of few trained products learns what one with more products than it needs computes.
TEST(NnLinear, TrainedFactorsLearnATensorOfTheirRank) {
  torch::manual_seed(4);
  nn::Linear teacher(nn::LinearOptions(16, 16).algebra("phm(4, trained_rank=2)").bias(false)),
      layer(nn::LinearOptions(16, 16).algebra("phm(4, trained_rank=4)").bias(false));
  torch::optim::Adam optimizer(layer->parameters(), torch::optim::AdamOptions(1e-2));
  const at::Tensor x = torch::randn({256, 16}), target = teacher(x).detach();
  double loss = 1;
  for (int step = 0; step < 1500; ++step) {
    optimizer.zero_grad();
    const at::Tensor error = torch::mse_loss(layer(x), target) / target.var();
    error.backward();
    optimizer.step();
    loss = error.item<double>();
  }
  EXPECT_LT(loss, 0.02);
}

TEST(NnLinear, SavesAndLoads) {
  nn::Linear layer(nn::LinearOptions(8, 8).algebra("wkp(4)")),
      other(nn::LinearOptions(8, 8).algebra("wkp(4)"));
  std::stringstream stream;
  torch::save(layer, stream);
  torch::load(other, stream);
  const at::Tensor x = torch::randn({3, 8});
  EXPECT_TRUE(torch::equal(layer(x), other(x)));
}

TEST(NnLinear, ComputesInTheTypeItWasMovedTo) {
  nn::Linear layer(nn::LinearOptions(16, 16).algebra("quaternion"));
  layer->to(torch::kBFloat16);
  EXPECT_EQ(layer->S.scalar_type(), torch::kBFloat16);
  const at::Tensor x = torch::randn({3, 16}), y = layer(x.to(torch::kBFloat16));
  EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
  EXPECT_LT(relative_error(y, linear_reference(*layer, x)), 0.02);
}

// torch::nn::Sequential takes modules whose forward is not const.
TEST(NnLinear, StandsInASequential) {
  torch::nn::Sequential model(nn::Linear(nn::LinearOptions(8, 16).algebra("quaternion")),
                              nn::Activation("relu"), nn::LayerNorm(nn::LayerNormOptions(16)),
                              nn::Dropout(nn::DropoutOptions(0.1)), torch::nn::Linear(16, 4),
                              nn::Linear(nn::LinearOptions(4, 2).algebra("phm(2)")));
  EXPECT_EQ(model->forward(torch::randn({3, 8})).sizes(), (at::IntArrayRef{3, 2}));
  EXPECT_EQ(model->parameters().size(), 2u + 2 + 2 + 3);
}

}  // namespace
}  // namespace quatrain
