#include "quatrain/nn/parameters.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "quatrain/nn.h"

namespace quatrain {
namespace {

TEST(NnParameters, WeightDecayIsForWeightsOnly) {
  torch::nn::Sequential model(nn::Linear(nn::LinearOptions(16, 16).algebra("wkp(4)")),
                              nn::Linear(nn::LinearOptions(16, 16).algebra("phm(2, trained_rank=3)")),
                              nn::Linear(nn::LinearOptions(16, 8).algebra("real")),
                              nn::LayerNorm(nn::LayerNormOptions(8)), torch::nn::Linear(8, 8));
  const auto found = nn::decaying_parameters(*model);
  ASSERT_EQ(found.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(found[i].is_same(model->at<nn::LinearImpl>(i).S));
  EXPECT_TRUE(nn::decaying_parameters(*nn::TransformerEncoderLayer(8, 2)).size() == 6u);
}

TEST(NnParameters, FactorizesEveryLearnedLayer) {
  torch::manual_seed(0);
  nn::TransformerEncoder encoder(nn::TransformerEncoderOptions(nn::TransformerEncoderLayerOptions(16, 2)
                                                                   .feed_forward(32)
                                                                   .algebra("phm(2)")
                                                                   .scope(nn::Scope::partial)
                                                                   .dropout(0),
                                                               2));
  encoder->eval();
  const at::Tensor x = torch::randn({2, 3, 16}), before = encoder(x);
  const nn::FactorizeReport report = nn::factorize(*encoder);
  EXPECT_EQ(report.learned, 8);
  EXPECT_EQ(report.sound, 8);
  EXPECT_TRUE(torch::allclose(encoder(x), before, 1e-4, 1e-5));
}

TEST(NnParameters, CountsALayerByItself) {
  const nn::Linear layer(nn::LinearOptions(16, 8).algebra("phm(4)"));
  const nn::ParameterReport report = nn::parameter_report(*layer);
  EXPECT_EQ(report.total, 16 * 8 / 4 + 64 + 8);
  EXPECT_EQ(report.trainable, report.total);
  EXPECT_EQ(report.encoder, 0);
  EXPECT_EQ(report.weights, report.total - 8);
}

}  // namespace
}  // namespace quatrain
