#include "quatrain/nn/parameters.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "quatrain/nn.h"

namespace quatrain {
namespace {

TEST(NnParameters, WeightDecayIsForWeightsOnly) {
  for (const char* name : {"S", "layers.0.attention.query.S", "convolution.F"})
    EXPECT_TRUE(nn::takes_weight_decay(name));
  for (const char* name : {"A", "w", "bias", "layers.0.alpha", "layers.0.feed_forward.linear1.A",
                           "norm.weight", "embedding.weight", "head.bias", "S.bias"})
    EXPECT_FALSE(nn::takes_weight_decay(name)) << name;
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
}

}  // namespace
}  // namespace quatrain
