#include "quatrain/nn/activation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

namespace quatrain {
namespace {

TEST(NnActivation, NamesMeanTorchsFunctions) {
  const at::Tensor x = torch::randn({3, 8});
  EXPECT_TRUE(torch::equal(nn::activation("identity")(x), x));
  EXPECT_TRUE(torch::equal(nn::activation("relu")(x), torch::relu(x)));
  EXPECT_TRUE(torch::equal(nn::activation("gelu")(x), torch::gelu(x)));
  EXPECT_TRUE(torch::equal(nn::activation("gelu_tanh")(x), torch::gelu(x, "tanh")));
  EXPECT_TRUE(torch::equal(nn::activation("tanh")(x), torch::tanh(x)));
  EXPECT_TRUE(torch::equal(nn::activation("sigmoid")(x), torch::sigmoid(x)));
  EXPECT_TRUE(torch::equal(nn::activation("silu")(x), torch::silu(x)));
  EXPECT_TRUE(torch::equal(nn::activation("elu")(x), torch::elu(x)));
  EXPECT_TRUE(torch::equal(nn::activation("selu")(x), torch::selu(x)));
  EXPECT_TRUE(torch::equal(nn::activation("leaky_relu")(x), torch::leaky_relu(x)));
  EXPECT_TRUE(torch::equal(nn::activation("softplus")(x), torch::softplus(x)));
  EXPECT_TRUE(torch::equal(nn::activation("hardtanh")(x), torch::hardtanh(x)));
  EXPECT_TRUE(torch::equal(nn::activation("mish")(x), torch::mish(x)));
  EXPECT_EQ(nn::activation_names().size(), 13u);
  for (const std::string& name : nn::activation_names())
    EXPECT_EQ(nn::Activation(name)(x).sizes(), x.sizes());
}

TEST(NnActivation, OverwritesWhatIsItsOwn) {
  torch::manual_seed(0);
  for (const std::string& name : nn::activation_names()) {
    SCOPED_TRACE(name);
    const at::Tensor x = torch::randn({3, 8}, torch::kFloat64).requires_grad_();
    const at::Tensor weights = torch::randn({3, 8}, torch::kFloat64);
    const at::Tensor given = x * 2, expected = nn::activation(name)(x * 2);
    const at::Tensor y = nn::overwriting_activation(name)(given);
    EXPECT_TRUE(torch::equal(y, expected));
    EXPECT_TRUE(torch::equal(torch::autograd::grad({(y * weights).sum()}, {x})[0],
                             torch::autograd::grad({(expected * weights).sum()}, {x})[0]));
    EXPECT_EQ(y.is_alias_of(given),
              name == "identity" || name == "relu" || name == "tanh" || name == "sigmoid");
  }
}

TEST(NnActivation, AnUnknownNameListsTheKnownOnes) {
  try {
    nn::activation("rleu");
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("relu, gelu"));
    EXPECT_THAT(error.what(), testing::HasSubstr("got 'rleu'"));
  }
}

}  // namespace
}  // namespace quatrain
