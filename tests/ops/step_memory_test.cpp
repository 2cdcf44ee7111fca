#include "ops/memory/step_memory.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <memory>
#include <thread>

namespace quatrain {
namespace {

using ops::StepMemory;

at::Tensor step(const at::Tensor& x) {
  return (x.matmul(x) + 1).relu().to(torch::kDouble).sum(0);
}

TEST(StepMemory, AStepThatIsDoneAgainTakesNothing) {
  const at::Tensor x = torch::randn({40, 40}), expected = step(x);
  const StepMemory memory;
  const StepMemory::Guard guard(memory);
  step(x);
  const int64_t blocks = memory.blocks();
  EXPECT_GE(blocks, 3);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(step(x).equal(expected));
  EXPECT_EQ(memory.blocks(), blocks);
}

TEST(StepMemory, TensorsMadeWithoutAGuardAreNotOfIt) {
  const StepMemory memory;
  { const StepMemory::Guard guard(memory); }
  step(torch::randn({8, 8}));
  EXPECT_EQ(memory.blocks(), 0);
}

TEST(StepMemory, BlocksComeBackFromOtherThreads) {
  const StepMemory memory;
  const StepMemory::Guard guard(memory);
  for (int i = 0; i < 5; ++i) {
    at::Tensor x = torch::zeros({100});
    std::thread([x = std::exchange(x, {})]() mutable { x.reset(); }).join();
  }
  EXPECT_EQ(memory.blocks(), 1);
}

TEST(StepMemory, ATensorOutlivesIt) {
  at::Tensor x;
  {
    const StepMemory memory;
    const StepMemory::Guard guard(memory);
    x = torch::arange(1000);
  }
  EXPECT_EQ(x.sum().item<int64_t>(), 499500);
  EXPECT_TRUE(x.clone().equal(x));
  EXPECT_EQ(x.resize_({2000}).narrow(0, 0, 1000).sum().item<int64_t>(), 499500);
}

// Memory that lay idle is the system's again, and what comes after is no tensor's beside.
TEST(StepMemory, AGuardOutlivesIt) {
  auto memory = std::make_unique<StepMemory>();
  const StepMemory::Guard guard(*memory);
  torch::zeros({128});
  memory.reset();
  at::Tensor beside;
  {
    const StepMemory::Pause pause;
    beside = torch::zeros({128});
  }
  const at::Tensor x = torch::ones({128});
  EXPECT_EQ(beside.sum().item<float>(), 0);
  EXPECT_EQ(x.sum().item<float>(), 128);
}

TEST(StepMemory, APauseTakesNothing) {
  const StepMemory memory;
  const StepMemory::Guard guard(memory);
  {
    const StepMemory::Pause pause;
    step(torch::ones({8, 8}));
  }
  EXPECT_EQ(memory.blocks(), 0);
  step(torch::ones({8, 8}));
  EXPECT_GT(memory.blocks(), 0);
}

TEST(StepMemory, TheOutermostGuardCounts) {
  const StepMemory outer, inner;
  const StepMemory::Guard first(outer);
  {
    const StepMemory::Guard second(inner);
    torch::zeros({8});
  }
  torch::zeros({8});
  EXPECT_EQ(inner.blocks(), 0);
  EXPECT_EQ(outer.blocks(), 1);
}

TEST(StepMemory, ATensorWithoutElementsTakesNone) {
  const StepMemory memory;
  const StepMemory::Guard guard(memory);
  EXPECT_EQ(torch::empty({0, 3}).numel(), 0);
  EXPECT_EQ(memory.blocks(), 0);
}

}  // namespace
}  // namespace quatrain
