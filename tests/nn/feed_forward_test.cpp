#include "quatrain/nn/feed_forward.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "nn/reference.h"
#include "system_memory.h"

namespace quatrain {
namespace {

TEST(NnFeedForward, IsLinearActivationLinear) {
  torch::manual_seed(0);
  const test::DefaultDtype guard(torch::kDouble);
  for (const char* algebra : {"real", "quaternion", "phm(4)"}) {
    nn::FeedForward layer(nn::FeedForwardOptions(16, 32).algebra(algebra).activation("gelu"));
    const at::Tensor x = torch::randn({2, 3, 16});
    const at::Tensor hidden = torch::gelu(test::linear_reference(*layer->linear1, x));
    EXPECT_LT(test::relative_error(layer(x), test::linear_reference(*layer->linear2, hidden)), 1e-12);
  }
}

TEST(NnFeedForward, DropsWholeUnitsOfTheHiddenLayer) {
  torch::manual_seed(1);
  nn::FeedForward layer(nn::FeedForwardOptions(64, 64)
                            .algebra("quaternion")
                            .activation("identity")
                            .dropout(0.5)
                            .dropout_per_unit(true));
  {
    const torch::NoGradGuard no_grad;  // the identity map: what comes out is what was dropped
    for (const nn::Linear& linear : {layer->linear1, layer->linear2}) {
      linear->S.zero_();
      linear->S[0].fill_diagonal_(1);
    }
  }
  const at::Tensor y = layer(torch::ones({50, 64})).view({50, 4, 16});
  for (int c = 1; c < 4; ++c) EXPECT_TRUE(torch::equal(y.select(1, 0), y.select(1, c)));
  EXPECT_GT(y.eq(0).sum().item<int64_t>(), 0);
}

// Panels of 256 rows a thread, the last one short.
TEST(NnFeedForward, EvaluatesManyRowsInPanels) {
  torch::manual_seed(2);
  const int threads = torch::get_num_threads();
  const at::Tensor x = torch::randn({4, 150, 8});
  for (const char* algebra : {"real", "quaternion", "phm(4)"}) {
    nn::FeedForward layer(nn::FeedForwardOptions(8, 2048).algebra(algebra).dropout(0.5));
    layer->eval();
    const at::Tensor expected = layer(x).detach();
    torch::set_num_threads(1);
    const torch::NoGradGuard no_grad;
    const auto largest = [&](const at::Tensor& rows) {
      const test::SystemMemory system;
      EXPECT_LT(test::relative_error(layer(rows), expected.view(rows.sizes())), 1e-6) << algebra;
      return system.largest();
    };
    EXPECT_LE(largest(x), 256 * 2048 * 4 + 64) << algebra;
    EXPECT_LE(largest(x.view({600, 8})), 256 * 2048 * 4 + 64) << algebra;
    EXPECT_GE(largest(x.transpose(0, 1).contiguous().transpose(0, 1)), 600 * 2048 * 4) << algebra;
    layer->train();  // dropout draws once for all rows
    torch::manual_seed(3);
    const at::Tensor drawn = layer(x);
    torch::manual_seed(3);
    const torch::autograd::AutoGradMode with_gradients(true);
    EXPECT_TRUE(torch::equal(layer(x), drawn)) << algebra;
  }
  torch::set_num_threads(threads);
}

TEST(NnFeedForward, NamesTheSizeThatDoesNotFit) {
  try {
    nn::FeedForward layer(nn::FeedForwardOptions(16, 30).algebra("quaternion"));
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "FeedForward: hidden must be divisible by n = 4, got 30 (nearest: 28, 32)");
  }
}

}  // namespace
}  // namespace quatrain
