#include "quatrain/nn/layout.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace quatrain {
namespace {

TEST(NnLayout, ConvertsBothWays) {
  const at::Tensor interleaved = torch::tensor({10, 20, 30, 40, 11, 21, 31, 41});  // r i j k r i j k
  const at::Tensor concatenated = torch::tensor({10, 11, 20, 21, 30, 31, 40, 41});
  EXPECT_TRUE(torch::equal(nn::to_concatenated(interleaved, 4), concatenated));
  EXPECT_TRUE(torch::equal(nn::to_interleaved(concatenated, 4), interleaved));
  const at::Tensor x = torch::randn({2, 3, 15});
  EXPECT_TRUE(torch::equal(nn::to_interleaved(nn::to_concatenated(x, 3), 3), x));
  EXPECT_THROW(nn::to_concatenated(x, 4), c10::Error);
}

}  // namespace
}  // namespace quatrain
