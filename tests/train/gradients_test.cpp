// The gradients of a step: of batches that are accumulated, and what bounds them.

#include "train/gradients.h"

#include <gtest/gtest.h>

#include <cmath>

#include "quatrain/train/trainer.h"
#include "train/toy_task.h"

namespace quatrain::train {
namespace {

class GradientsTest : public FolderTest {
 protected:
  RunOptions run(const std::string& name) const { return {.folder = folder_ / name}; }
};

TEST_F(GradientsTest, AccumulationEqualsABiggerBatch) {
  ToyTask small("quaternion", 0, 8), big("quaternion", 0, 16);
  TrainerOptions o = toy_options(8);
  o.optimizer.kind = OptimizerKind::sgd;
  Trainer(big, o, run("big")).run();
  o.accumulate = 2;
  Trainer(small, o, run("small")).run();
  EXPECT_EQ(small.asked.size(), 2 * big.asked.size());
  const auto a = copies(small.model()), b = copies(big.model());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::allclose(a[i], b[i], 1e-5, 1e-6));
}

TEST_F(GradientsTest, UnequalBatchesThatAreAccumulatedWeighByTheirExamples) {
  ToyTask small("quaternion", 0, 40), big("quaternion", 0, 64);  // of 64 examples: 40 and 24, or all
  TrainerOptions o = toy_options(8);
  o.optimizer.kind = OptimizerKind::sgd;
  const auto start = copies(big.model());
  Trainer(big, o, run("big")).run();
  o.accumulate = 2;
  Trainer(small, o, run("small")).run();
  EXPECT_EQ(small.asked.size(), 2 * big.asked.size());
  const auto a = copies(small.model()), b = copies(big.model());
  double moved = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(at::allclose(a[i], b[i], 1e-5, 1e-6));
    moved += (b[i] - start[i]).norm().item<double>();
  }
  EXPECT_GT(moved, 1e-2);
}

TEST_F(GradientsTest, ClippingBoundsTheStep) {
  ToyTask task("quaternion", 0);
  const auto before = copies(task.model());
  TrainerOptions o = toy_options(1);
  o.optimizer.kind = OptimizerKind::sgd;
  o.optimizer.learning_rate = 1;
  o.clip = 1e-3;
  Trainer(task, o, run("run")).run();
  const auto after = copies(task.model());
  double square = 0;
  for (size_t i = 0; i < after.size(); ++i) square += (after[i] - before[i]).pow(2).sum().item<double>();
  EXPECT_NEAR(std::sqrt(square), 1e-3, 1e-5);
}

}  // namespace
}  // namespace quatrain::train
