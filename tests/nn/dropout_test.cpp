#include "quatrain/nn/dropout.h"

#include <gtest/gtest.h>
#include <torch/types.h>

namespace quatrain {
namespace {

TEST(NnDropout, PerUnitDropsAllComponentsTogether) {
  torch::manual_seed(0);
  const at::Tensor x = torch::ones({100, 4 * 50});
  const at::Tensor units = nn::dropout(x, 0.3, true, 4, true).view({100, 4, 50});
  for (int c = 1; c < 4; ++c) EXPECT_TRUE(torch::equal(units.select(1, 0), units.select(1, c)));
  EXPECT_NEAR(units.eq(0).to(torch::kFloat).mean().item<float>(), 0.3, 0.03);
  EXPECT_FLOAT_EQ(units.max().item<float>(), 1 / 0.7f);

  const at::Tensor single = nn::dropout(x, 0.3, true, 4, false).view({100, 4, 50});
  EXPECT_FALSE(torch::equal(single.select(1, 0), single.select(1, 1)));
  EXPECT_NEAR(single.eq(0).to(torch::kFloat).mean().item<float>(), 0.3, 0.03);
}

TEST(NnDropout, IsTheIdentityInEvalMode) {
  const at::Tensor x = torch::randn({3, 8});
  nn::Dropout layer(nn::DropoutOptions(0.5).n(4).per_unit(true));
  layer->eval();
  EXPECT_TRUE(torch::equal(layer(x), x));
  layer->train();
  EXPECT_FALSE(torch::equal(layer(x), x));
  EXPECT_THROW(nn::Dropout(nn::DropoutOptions(1.5)), std::invalid_argument);
  EXPECT_THROW(nn::dropout(torch::ones({3, 7}), 0.5, true, 4, true), c10::Error);
}

}  // namespace
}  // namespace quatrain
