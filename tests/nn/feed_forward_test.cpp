#include "quatrain/nn/feed_forward.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>

#include "nn/reference.h"
#include "quatrain/ops.h"
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

// Five panels, the last one short.
TEST(NnFeedForward, EvaluatesManyRowsInPanels) {
  torch::manual_seed(2);
  const int threads = torch::get_num_threads();
  const at::Tensor x = torch::randn({11, 191, 8});
  for (const char* algebra : {"real", "quaternion", "phm(4)"}) {
    nn::FeedForward layer(nn::FeedForwardOptions(8, 2048).algebra(algebra).dropout(0.5));
    layer->eval();
    const at::Tensor expected = layer(x);
    EXPECT_EQ(expected.grad_fn()->name().find("View"), std::string::npos) << expected.grad_fn()->name();
    torch::set_num_threads(1);
    at::Tensor y;
    {
      const torch::NoGradGuard no_grad;
      for (const at::Tensor& rows : {x, x.view({2101, 8}), x.transpose(0, 1)}) {
        const test::SystemMemory system;
        y = layer(rows);
        EXPECT_LT(test::relative_error(
                      y, rows.is_contiguous() ? expected.view(rows.sizes()) : expected.transpose(0, 1)),
                  1e-6)
            << algebra;
        if (rows.is_contiguous()) {
          EXPECT_LE(system.largest(), 421 * 2048 * 4) << algebra;
        }
      }
      // A row's answer does not hang on the others where the way is fixed.
      const ops::PlannedRowsGuard guard(ops::PlannedRows{32});
      const at::Tensor all = layer(x).view({2101, 8});
      for (const int64_t row : {0, 421, 2100})
        EXPECT_TRUE(torch::equal(all[row], layer(x.view({2101, 8}).narrow(0, row, 1))[0])) << algebra << row;
    }
    y.add_(layer->linear2->bias.sum());  // callers may write over a result, with gradients too
    torch::set_num_threads(2);
    const at::AutoGradMode without_gradients(false);
    EXPECT_LT(test::relative_error(layer(x.repeat({2, 1, 1})), expected.repeat({2, 1, 1})), 1e-6) << algebra;
    layer->train();  // dropout draws once for all rows
    torch::manual_seed(3);
    const at::Tensor drawn = layer(x);
    torch::manual_seed(3);
    const at::AutoGradMode with_gradients(true);
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
