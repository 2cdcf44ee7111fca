#include "quatrain/nn/norm.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "quatrain/layer_ops.h"

namespace quatrain {
namespace {

TEST(NnNorm, OverAllComponentsIsTorchs) {
  nn::LayerNorm ours(nn::LayerNormOptions(12).n(4));
  torch::nn::LayerNorm theirs(torch::nn::LayerNormOptions({12}));
  const at::Tensor x = torch::randn({3, 12});
  EXPECT_TRUE(torch::equal(ours(x), theirs(x)));
}

TEST(NnNorm, PerComponentNormalisesEachByItself) {
  const at::Tensor scales = torch::tensor({1., 10., 100., 1000.}).view({4, 1});
  const at::Tensor x = (torch::randn({3, 4, 8}) * scales + scales).view({3, 32});
  nn::LayerNorm layer(nn::LayerNormOptions(32).n(4).per_component(true));
  const at::Tensor y = layer(x).view({3, 4, 8});
  EXPECT_TRUE(torch::allclose(y.mean(-1), torch::zeros({3, 4}), 0, 1e-5));
  EXPECT_TRUE(torch::allclose(y.var(-1, false), torch::ones({3, 4}), 0, 1e-3));
  {
    const torch::NoGradGuard no_grad;
    layer->weight.fill_(2);
    layer->bias.fill_(3);
  }
  EXPECT_TRUE(torch::allclose(layer(x).view({3, 4, 8}), 2 * y + 3));
  EXPECT_THROW(nn::LayerNorm(nn::LayerNormOptions(30).n(4).per_component(true)), std::invalid_argument);
}

// As torch's on a CPU: of the type of x.
TEST(NnNorm, OfOneTypeWhateverN) {
  const at::Tensor x = torch::randn({3, 12}).to(torch::kBFloat16), ones = torch::ones({12}),
                   zeros = torch::zeros({12});
  for (const int64_t n : {1, 2, 4}) {
    const at::Tensor y = ops::hypercomplex_layer_norm(x, ones, zeros, n);
    EXPECT_EQ(y.scalar_type(), torch::kBFloat16) << n;
  }
}

}  // namespace
}  // namespace quatrain
