#include "quatrain/nn/embedding.h"

#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/embedding.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "nn/reference.h"
#include "quatrain/algebra.h"
#include "quatrain/nn/parameters.h"

namespace quatrain {
namespace {

using test::relative_error;

const std::vector<const char*> kEmbeddingAlgebras{
    "real", "complex", "quaternion", "octonion", "phm(4)", "wkp(quaternion)", "phm(4, trained_rank=8)"};

nn::Embedding embedding(const char* algebra, int64_t tokens = 48, int64_t width = 16) {
  return nn::Embedding(nn::EmbeddingOptions(tokens, width).algebra(algebra));
}

TEST(NnEmbedding, RowsAreThoseOfTheWrittenOutMatrix) {
  torch::manual_seed(0);
  const test::DefaultDtype guard(torch::kDouble);
  for (const char* algebra : kEmbeddingAlgebras) {
    SCOPED_TRACE(algebra);
    nn::Embedding layer = embedding(algebra);
    const at::Tensor H = layer->matrix();
    const at::Tensor tokens = torch::randint(48, {3, 5}, torch::kLong);
    for (const bool training : {true, false}) {
      layer->train(training);
      EXPECT_LT(relative_error(layer(tokens), H.index({tokens})), 1e-12);
      EXPECT_LT(relative_error(layer(tokens.t()), H.index({tokens.t()})), 1e-12);
      const at::Tensor x = torch::randn({2, 16});
      EXPECT_LT(relative_error(layer->scores(x), x.mm(H.t())), 1e-12);
    }
    EXPECT_EQ(layer(torch::empty({0, 3}, torch::kLong)).sizes(), (std::vector<int64_t>{0, 3, 16}));
  }
}

// The operators take any table; layers with n = 1 are real.
TEST(NnEmbedding, RowsOfAScalarAlgebraAreMultipliedWithItsTable) {
  algebra::add("embedding_test_two", 1, {2});
  const at::Tensor S = torch::randn({1, 6, 3}), tokens = torch::arange(6);
  EXPECT_TRUE(torch::equal(ops::embedding(tokens, S, {"embedding_test_two", {}, {}}), 2 * S[0]));
}

// Where no gradient is asked for rows are written directly, of what lies in order.
TEST(NnEmbedding, RowsAreTheSameWithoutAGradient) {
  torch::manual_seed(3);
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16})
    for (const char* algebra : kEmbeddingAlgebras) {
      SCOPED_TRACE(algebra);
      nn::Embedding layer = embedding(algebra);
      layer->to(type);
      const at::Tensor S = layer->S.detach(), expected = layer->matrix().detach().to(torch::kDouble);
      const double tolerance = type == torch::kFloat ? 1e-6 : type == torch::kDouble ? 1e-14 : 0.02;
      const torch::NoGradGuard no_grad;
      for (const auto whole : {torch::kLong, torch::kInt}) {
        const at::Tensor tokens = torch::randint(48, {3, 5}, whole);
        const at::Tensor rows = layer(tokens.t());
        EXPECT_EQ(rows.scalar_type(), type);
        EXPECT_LT(relative_error(rows.to(torch::kDouble), expected.index({tokens.t().to(torch::kLong)})),
                  tolerance);
      }
      EXPECT_EQ(layer(torch::empty({0, 3}, torch::kLong)).sizes(), (std::vector<int64_t>{0, 3, 16}));
      for (const int64_t outside : {-1, 48}) EXPECT_ANY_THROW(layer(torch::tensor({1, outside})));
      layer->S.set_data(S.transpose(1, 2).contiguous().transpose(1, 2));
      EXPECT_LT(relative_error(layer(torch::arange(48)).to(torch::kDouble), expected), tolerance);
    }
}

TEST(NnEmbedding, OneComponentIsTorchsEmbedding) {
  nn::Embedding ours = embedding("real");
  const torch::nn::Embedding theirs(48, 16);
  const torch::NoGradGuard no_grad;
  ours->S.copy_(theirs->weight.unsqueeze(0));
  const at::Tensor tokens = torch::arange(48);
  EXPECT_TRUE(torch::equal(ours(tokens), theirs->weight));
}

TEST(NnEmbedding, RowsKeepTheirTypeUnderAutocast) {
  for (const char* algebra : kEmbeddingAlgebras) {
    nn::Embedding layer = embedding(algebra);
    const at::Tensor tokens = torch::arange(48), expected = layer(tokens);
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, torch::kBFloat16);
    const at::Tensor rows = layer(tokens);
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    EXPECT_EQ(rows.scalar_type(), torch::kFloat) << algebra;
    EXPECT_TRUE(torch::equal(rows, expected)) << algebra;
  }
}

TEST(NnEmbedding, GradientsAreThoseOfTheWrittenOutMatrix) {
  torch::manual_seed(1);
  const test::DefaultDtype guard(torch::kDouble);
  for (const char* algebra : kEmbeddingAlgebras) {
    SCOPED_TRACE(algebra);
    nn::Embedding layer = embedding(algebra);
    const at::Tensor tokens = torch::randint(48, {40}, torch::kLong), weights = torch::randn({40, 16});
    const auto parameters = layer->parameters();
    const auto of = [&](const at::Tensor& rows) {
      return torch::autograd::grad({(rows * weights).sin().sum()}, parameters);
    };
    const auto ours = of(layer(tokens)), expected = of(layer->matrix().index({tokens}));
    for (size_t i = 0; i < ours.size(); ++i) EXPECT_LT(relative_error(ours[i], expected[i]), 1e-11);
  }
}

TEST(NnEmbedding, StartsWithTheVarianceOfARow) {
  torch::manual_seed(2);
  for (const char* algebra : {"real", "quaternion", "dual", "phm(4)", "phm(4, trained_rank=8)"})
    EXPECT_NEAR(embedding(algebra, 4096, 64)->matrix().var().item<double>(), 1.0 / 64, 0.002) << algebra;
}

TEST(NnEmbedding, IsCountedAndDoesNotDecay) {
  const nn::Embedding layer = embedding("phm(4)");
  EXPECT_EQ(nn::parameter_report(*layer).embeddings, 48 * 16 / 4 + 64);
  EXPECT_TRUE(nn::decaying_parameters(*layer).empty());
}

TEST(NnEmbedding, RefusesBadArguments) {
  EXPECT_THROW(embedding("quaternion", 50), std::invalid_argument);
  EXPECT_THROW(embedding("quaternion", 48, 18), std::invalid_argument);
  nn::Embedding layer = embedding("quaternion");
  for (const int64_t token : {-1, 48})
    EXPECT_ANY_THROW(layer(torch::full({2}, token, torch::kLong))) << token;
  try {
    layer(torch::randn({3}));
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_THAT(error.what_without_backtrace(),
                testing::HasSubstr("tokens must be int64 or int32, got Float"));
  }
}

}  // namespace
}  // namespace quatrain
