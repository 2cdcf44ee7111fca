// Prepared weights must never be stale: every road on which a weight can change in eval mode.
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/optim.h>
#include <torch/serialize.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <sstream>

#include "nn/reference.h"

namespace quatrain {
namespace {

struct Case {
  std::string algebra;
  ops::Way way;
};

std::vector<Case> cases() {
  return {{"quaternion", ops::Way::factored},
          {"quaternion", ops::Way::mixed},
          {"quaternion", ops::Way::materialised},
          {"phm(4)", ops::Way::materialised},
          {"phm(4)", ops::Way::mixed},
          {"wkp(4)", ops::Way::materialised},
          {"wkp(4)", ops::Way::mixed}};
}

/// Fills the cache by two calls, changes the layer, and asks for the present weights' result.
void expect_fresh_after(const std::function<void(nn::Linear&)>& change) {
  torch::manual_seed(3);
  for (const auto& [algebra, way] : cases()) {
    nn::Linear layer(nn::LinearOptions(16, 32).algebra(algebra).way(way));
    layer->eval();
    const at::Tensor x = torch::randn({4, 16});
    {
      const torch::NoGradGuard no_grad;
      layer(x);
      // The mixed way reads S as it is.
      if (way != ops::Way::mixed) {
        EXPECT_GE(ops::prepared_size().weights, 1) << "nothing was kept, so nothing is tested";
      }
      EXPECT_LT(test::relative_error(layer(x), test::linear_reference(*layer, x)), 1e-5);
    }
    const at::Tensor before = layer(x).detach();
    change(layer);
    const torch::NoGradGuard no_grad;
    const at::Tensor after = layer(x.to(layer->S.scalar_type()));
    EXPECT_LT(test::relative_error(after, test::linear_reference(*layer, x)), 1e-5)
        << algebra << " " << ops::name(way);
  }
}

at::Tensor other(const at::Tensor& t) {
  return torch::randn_like(t);
}

TEST(NnLinearCache, InPlaceCopy) {
  expect_fresh_after([](nn::Linear& layer) {
    const torch::NoGradGuard no_grad;
    layer->S.copy_(other(layer->S));
  });
}

TEST(NnLinearCache, SetData) {
  expect_fresh_after([](nn::Linear& layer) { layer->S.set_data(other(layer->S)); });
}

TEST(NnLinearCache, DataWriteThenDrop) {
  expect_fresh_after([](nn::Linear& layer) {
    layer->S.data().copy_(other(layer->S));
    ops::drop_prepared(layer->S);
  });
}

TEST(NnLinearCache, DataWriteThenTrainAndEval) {
  expect_fresh_after([](nn::Linear& layer) {
    layer->S.data().copy_(other(layer->S));
    layer->train();
    layer->eval();
  });
  expect_fresh_after([](nn::Linear& layer) {
    layer->S.data().copy_(other(layer->S));
    layer->eval();
  });
}

TEST(NnLinearCache, OptimizerSteps) {
  const auto step = [](nn::Linear& layer, torch::optim::Optimizer& optimizer) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      optimizer.zero_grad();
      layer(torch::randn({4, 16})).square().sum().backward();
      optimizer.step();
    }
  };
  expect_fresh_after([&](nn::Linear& layer) {
    torch::optim::SGD optimizer(layer->parameters(), 0.1);
    step(layer, optimizer);
  });
  expect_fresh_after([&](nn::Linear& layer) {
    torch::optim::AdamW optimizer(layer->parameters(), 0.1);
    step(layer, optimizer);
  });
}

TEST(NnLinearCache, OtherType) {
  expect_fresh_after([](nn::Linear& layer) { layer->to(torch::kDouble); });
  expect_fresh_after([](nn::Linear& layer) {  // there and back, with a change in between
    layer->to(torch::kDouble);
    layer->S.data().mul_(2);
    layer->to(torch::kFloat);
  });
}

TEST(NnLinearCache, Loading) {
  expect_fresh_after([](nn::Linear& layer) {
    nn::Linear source(layer->options);
    std::stringstream stream;
    torch::save(source, stream);
    torch::load(layer, stream);
    EXPECT_TRUE(torch::equal(layer->S, source->S));
  });
}

TEST(NnLinearCache, StructureTensor) {
  expect_fresh_after([](nn::Linear& layer) {
    const torch::NoGradGuard no_grad;
    if (layer->A.defined()) layer->A.copy_(other(layer->A));
    if (layer->w.defined()) layer->w.copy_(other(layer->w));
  });
}

TEST(NnLinearCache, CloneDoesNotShare) {
  expect_fresh_after([](nn::Linear& layer) {
    auto copy = std::dynamic_pointer_cast<nn::LinearImpl>(layer->clone());
    const torch::NoGradGuard no_grad;
    copy->S.mul_(3);
    const at::Tensor x = torch::randn({2, 16});
    EXPECT_LT(test::relative_error(copy->forward(x), test::linear_reference(*copy, x)), 1e-5);
    layer = nn::Linear(copy);
  });
}

TEST(NnLinearCache, ANewLayerAtAnOldAddress) {
  torch::manual_seed(4);
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({4, 16});
  for (int repeat = 0; repeat < 50; ++repeat) {
    nn::Linear layer(nn::LinearOptions(16, 32).algebra("quaternion").way(ops::Way::factored));
    layer->eval();
    EXPECT_LT(test::relative_error(layer(x), test::linear_reference(*layer, x)), 1e-5);
  }
}

TEST(NnLinearCache, WhatCouldNotBeFoundAgainIsNotKept) {
  nn::Linear layer(nn::LinearOptions(16, 32).algebra("wkp(4)").way(ops::Way::materialised));
  layer->eval();
  const int64_t before = ops::prepared_size().weights;
  layer(torch::randn({4, 16}));  // with gradients: w S is a new tensor
  EXPECT_EQ(ops::prepared_size().weights, before);
}

// Beside S lies w S, and beside w S what was made of it.
TEST(NnLinearCache, WkpIsKept) {
  torch::manual_seed(5);
  for (const ops::Way way : {ops::Way::factored, ops::Way::materialised}) {
    nn::Linear layer(nn::LinearOptions(16, 32).algebra("wkp(4)").way(way));
    ASSERT_TRUE(layer->factorize());
    layer->eval();
    const int64_t before = ops::prepared_size().weights;
    const at::Tensor x = torch::randn({4, 16});
    for (const bool inference : {false, true}) {
      const c10::InferenceMode mode(inference);  // false records gradients
      const torch::NoGradGuard no_grad;
      layer(x);
      EXPECT_EQ(ops::prepared_size().weights, before + 2) << inference;
    }
    const torch::NoGradGuard no_grad;
    at::Tensor kept = layer->operands(false).S;
    EXPECT_TRUE(layer->operands(false).S.is_same(kept));
    EXPECT_TRUE(layer->operands(false).product.A.is_same(layer->A)) << "which training follows";
    for (const at::Tensor& part : {layer->S, layer->w}) {
      part.mul_(2);
      EXPECT_FALSE(layer->operands(false).S.is_same(kept));
      EXPECT_LT(test::relative_error(layer(x), test::linear_reference(*layer, x)), 1e-4);
      EXPECT_TRUE(layer->has_factors()) << "they are A's, which stayed";
    }
    kept = layer->operands(false).S;
    kept.zero_();  // which is not its reader's to do
    EXPECT_LT(test::relative_error(layer(x), test::linear_reference(*layer, x)), 1e-4);
    kept.reset();
    ops::drop_prepared(layer->S);
    EXPECT_EQ(ops::prepared_size().weights, before);
  }
}

TEST(NnLinearCache, WkpInTrainingKeepsNothing) {
  torch::manual_seed(6);
  nn::Linear layer(nn::LinearOptions(16, 32).algebra("wkp(4)"));
  layer->eval();
  const at::Tensor x = torch::randn({4, 16});
  const auto answer_is_fresh = [&] {
    const torch::NoGradGuard no_grad;
    return test::relative_error(layer(x), test::linear_reference(*layer, x)) < 1e-5;
  };
  EXPECT_TRUE(answer_is_fresh());
  const int64_t before = ops::prepared_size().weights;
  layer(x).sum().backward();
  EXPECT_LT(ops::prepared_size().weights, before);
  EXPECT_TRUE(answer_is_fresh());
  layer->S.data().view(-1)[5] += 1;  // what no version tells of
  EXPECT_TRUE(answer_is_fresh());
  layer->eval();
  EXPECT_TRUE(answer_is_fresh());
  EXPECT_EQ(ops::prepared_size().weights, before);
}

// Nobody says so to S, beside which its product with the old w lies.
TEST(NnLinearCache, WhatWasMadeOfAReplacedWGoes) {
  torch::manual_seed(8);
  nn::Linear layer(nn::LinearOptions(16, 32).algebra("wkp(4)").way(ops::Way::materialised));
  layer->eval();
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({4, 16});
  layer(x);
  const ops::PreparedSize before = ops::prepared_size();
  for (int repeat = 0; repeat < 3; ++repeat) {
    layer->w.set_data(torch::randn({4}));
    EXPECT_LT(test::relative_error(layer(x), test::linear_reference(*layer, x)), 1e-4);
    EXPECT_EQ(ops::prepared_size().bytes, before.bytes);
    EXPECT_EQ(ops::prepared_size().weights, before.weights);
  }
}

TEST(NnLinearCache, OneSServesSeveralW) {
  torch::manual_seed(7);
  const auto options = nn::LinearOptions(16, 32).algebra("wkp(4)");
  nn::Linear one(options), other(options);
  const torch::NoGradGuard no_grad;
  other->S = one->S, other->w.mul_(3);
  one->eval(), other->eval();
  const at::Tensor x = torch::randn({4, 16}), S = one->operands(false).S;
  for (int turn = 0; turn < 2; ++turn)
    for (nn::Linear layer : {one, other})
      EXPECT_LT(test::relative_error(layer(x), test::linear_reference(*layer, x)), 1e-5);
  EXPECT_TRUE(one->operands(false).S.is_same(S));
}

}  // namespace
}  // namespace quatrain
