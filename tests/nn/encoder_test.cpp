#include "quatrain/nn/encoder.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/transformerlayer.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "nn/reference.h"
#include "quatrain/nn/parameters.h"

namespace quatrain {
namespace {

using test::relative_error;

nn::TransformerEncoderLayerOptions layer_options(const char* algebra,
                                                 nn::NormStyle norm = nn::NormStyle::post) {
  return nn::TransformerEncoderLayerOptions(32, 2).feed_forward(64).algebra(algebra).norm(norm).dropout(0);
}

const std::vector<nn::NormStyle> kNormStyles{nn::NormStyle::post, nn::NormStyle::pre, nn::NormStyle::phydi};

TEST(NnEncoder, OneComponentIsTorchsEncoderLayer) {
  torch::manual_seed(0);
  for (const bool packed : {false, true}) {
    nn::TransformerEncoderLayer ours(layer_options("real").packed(packed).dropout(0.1));
    torch::nn::TransformerEncoderLayer theirs(
        torch::nn::TransformerEncoderLayerOptions(32, 2).dim_feedforward(64).dropout(0.1));
    const torch::NoGradGuard no_grad;
    for (const at::Tensor& parameter : theirs->parameters()) parameter.normal_(0, 0.2);
    const auto& attention = theirs->self_attn;
    if (packed) {
      ours->attention->packed->S.copy_(attention->in_proj_weight.unsqueeze(0));
      ours->attention->packed->bias.copy_(attention->in_proj_bias);
    } else {
      const auto weights = attention->in_proj_weight.chunk(3), biases = attention->in_proj_bias.chunk(3);
      const std::vector<nn::Linear> maps{ours->attention->query, ours->attention->key,
                                         ours->attention->value};
      for (size_t part = 0; part < 3; ++part) {
        maps[part]->S.copy_(weights[part].unsqueeze(0));
        maps[part]->bias.copy_(biases[part]);
      }
    }
    const auto copy = [](const nn::Linear& to, const auto& from) {
      to->S.copy_(from->weight.unsqueeze(0));
      to->bias.copy_(from->bias);
    };
    copy(ours->attention->output, attention->out_proj);
    copy(ours->feed_forward->linear1, theirs->linear1);
    copy(ours->feed_forward->linear2, theirs->linear2);
    for (const auto& [to, from] :
         {std::pair{ours->norm1, theirs->norm1}, std::pair{ours->norm2, theirs->norm2}}) {
      to->weight.copy_(from->weight);
      to->bias.copy_(from->bias);
    }
    ours->eval();
    theirs->eval();
    const at::Tensor x = torch::randn({3, 6, 32});
    const at::Tensor padding = torch::arange(6).unsqueeze(0) >= torch::tensor({6, 4, 1}).unsqueeze(1);
    const at::Tensor expected = theirs(x.transpose(0, 1), at::Tensor(), padding).transpose(0, 1);
    const at::Tensor word = padding.logical_not().unsqueeze(2);
    EXPECT_LT(relative_error(ours(x, padding) * word, expected * word), 1e-6);
    EXPECT_LT(relative_error(ours(x), theirs(x.transpose(0, 1)).transpose(0, 1)), 1e-6);
  }
}

TEST(NnEncoder, NormStylesAreTheFormulas) {
  torch::manual_seed(1);
  const test::DefaultDtype guard(torch::kDouble);
  const at::Tensor x = torch::randn({2, 5, 32});
  for (const char* algebra : {"real", "quaternion", "phm(4)"}) {
    at::Tensor y;
    for (const bool printed : {false, true}) {
      nn::TransformerEncoderLayer post(layer_options(algebra).printed(printed));
      y = post->norm1(x + post->attention->self_attention(x));
      const at::Tensor sum = (printed ? x : y) + post->feed_forward(y);  // printed: PHYDI (4)
      EXPECT_LT(relative_error(post(x), post->norm2(sum)), 1e-12);
    }

    nn::TransformerEncoderLayer pre(layer_options(algebra, nn::NormStyle::pre));
    y = x + pre->attention->self_attention(pre->norm1(x));
    EXPECT_LT(relative_error(pre(x), y + pre->feed_forward(pre->norm2(y))), 1e-12);

    for (const bool printed : {false, true}) {
      nn::TransformerEncoderLayer phydi(layer_options(algebra, nn::NormStyle::phydi).printed(printed));
      EXPECT_TRUE(torch::equal(phydi(x), x)) << "alpha starts at zero: the identity";
      {
        const torch::NoGradGuard no_grad;
        phydi->alpha.fill_(0.7);
      }
      y = x + 0.7 * phydi->attention->self_attention(x);
      EXPECT_LT(relative_error(phydi(x), (printed ? x : y) + 0.7 * phydi->feed_forward(y)), 1e-12);
    }
  }
  EXPECT_THROW(nn::TransformerEncoderLayer(layer_options("real", nn::NormStyle::pre).printed(true)),
               std::invalid_argument);
}

TEST(NnEncoder, PartialKeepsTheFeedForwardReal) {
  const nn::TransformerEncoderLayer layer(layer_options("quaternion").scope(nn::Scope::partial));
  EXPECT_EQ(layer->attention->query->S.size(0), 4);
  EXPECT_EQ(layer->attention->output->S.size(0), 4);
  EXPECT_EQ(layer->feed_forward->linear1->S.size(0), 1);
  EXPECT_EQ(layer->feed_forward->linear2->S.size(0), 1);
}

TEST(NnEncoder, NormPerComponentReachesTheNorms) {
  nn::TransformerEncoder encoder(nn::TransformerEncoderOptions(
      layer_options("quaternion", nn::NormStyle::pre).norm_per_component(true), 1));
  const at::Tensor y = encoder(torch::randn({2, 5, 32})).view({2, 5, 4, 8});
  EXPECT_TRUE(torch::allclose(y.mean(-1), torch::zeros({2, 5, 4}), 0, 1e-5));
}

TEST(NnEncoder, ParameterCountsAreThePapers) {
  const auto encoder = [](const std::string& algebra) {
    return nn::TransformerEncoder(nn::TransformerEncoderOptions(
        nn::TransformerEncoderLayerOptions(128, 4).feed_forward(512).algebra(algebra), 2));
  };
  const std::vector<std::tuple<std::string, int64_t, int64_t>> counts{
      {"phm(1)", 393216, 396544}, {"phm(2)", 196704, 200032}, {"phm(4)", 99072, 102400},
      {"phm(8)", 55296, 58624},   {"real", 393216, 396544},   {"quaternion", 98304, 101632}};
  for (const auto& [algebra, weights, all] : counts) {
    const nn::TransformerEncoder model = encoder(algebra);
    EXPECT_EQ(nn::parameter_report(*model).weights, weights) << algebra;
    EXPECT_EQ(nn::parameter_report(*model).total, all) << algebra;
  }
  // PHYDI: an alpha a layer instead of two norms.
  const nn::TransformerEncoder phydi(nn::TransformerEncoderOptions(
      nn::TransformerEncoderLayerOptions(128, 4).feed_forward(512).algebra("phm(4)").norm(
          nn::NormStyle::phydi),
      2));
  EXPECT_EQ(nn::parameter_report(*phydi).total, 102400 - 2 * 2 * 256 + 2);
}

// PHYDI's language model: width 120 or 128, 8 heads, feed-forward 256, packed, 12 layers at n = 4.
TEST(NnEncoder, PackedCountsArePhydis) {
  const auto layers = [](nn::NormStyle norm) {
    const nn::TransformerEncoder model(nn::TransformerEncoderOptions(
        nn::TransformerEncoderLayerOptions(128, 8).feed_forward(256).algebra("phm(4)").packed(true).norm(
            norm),
        12));
    return nn::parameter_report(*model).total;
  };
  // The embedding and the generator of 28,780 words are PHM too: 28,780 x 128 / 4 each, their A, the
  // generator's bias.
  const int64_t outside = 2 * (28780 * 128 / 4 + 64) + 28780;
  EXPECT_NEAR(static_cast<double>(layers(nn::NormStyle::post) + outside), 2.284e6, 1000);
  EXPECT_NEAR(static_cast<double>(layers(nn::NormStyle::phydi) + outside), 2.278e6, 1000);
}

TEST(NnEncoder, GradientsReachEveryParameter) {
  torch::manual_seed(2);
  for (const char* algebra : {"real", "quaternion", "octonion", "phm(4)", "wkp(2)"})
    for (const nn::NormStyle style : kNormStyles)
      for (const bool packed : {false, true}) {
        nn::TransformerEncoder encoder(
            nn::TransformerEncoderOptions(layer_options(algebra, style).packed(packed).dropout(0.1), 2));
        if (style == nn::NormStyle::phydi) {
          const torch::NoGradGuard no_grad;  // at alpha = 0 only alpha itself has a gradient
          for (const auto& item : encoder->named_parameters())
            if (item.key().ends_with("alpha")) item->fill_(0.5);
        }
        const at::Tensor x = torch::randn({2, 5, 32});
        (encoder(x) * torch::randn_like(x)).sum().backward();
        for (const auto& item : encoder->named_parameters()) {
          // A key's bias shifts all scores of a query alike: the softmax does not see it.
          if (item.key().ends_with("key.bias")) continue;
          EXPECT_GT(item->grad().abs().sum().item<double>(), 0)
              << algebra << " " << nn::name(style) << " " << item.key();
        }
      }
}

TEST(NnEncoder, PaddingDoesNotMatter) {
  torch::manual_seed(3);
  for (const char* algebra : {"real", "quaternion", "phm(4)"})
    for (const nn::NormStyle style : kNormStyles) {
      nn::TransformerEncoder encoder(nn::TransformerEncoderOptions(layer_options(algebra, style), 2));
      encoder->eval();
      const at::Tensor x = torch::randn({2, 5, 32});
      const at::Tensor longer = torch::cat({x, torch::randn({2, 4, 32})}, 1);
      const at::Tensor padding = (torch::arange(9) >= 5).expand({2, 9});
      EXPECT_LT(relative_error(encoder(longer, padding).narrow(1, 0, 5), encoder(x)), 1e-5);
    }
}

TEST(NnEncoder, CloneMovesAndTrains) {
  torch::manual_seed(4);
  for (const nn::NormStyle style : kNormStyles) {
    nn::TransformerEncoder encoder(nn::TransformerEncoderOptions(layer_options("phm(4)", style), 2));
    encoder->eval();
    const at::Tensor x = torch::randn({2, 5, 32}), before = encoder(x);
    const auto copy = std::dynamic_pointer_cast<nn::TransformerEncoderImpl>(encoder->clone());
    EXPECT_TRUE(torch::equal(copy->forward(x), before));
    copy->to(torch::kDouble);
    EXPECT_LT(relative_error(copy->forward(x.to(torch::kDouble)), before), 1e-5);
    {
      const torch::NoGradGuard no_grad;
      for (const at::Tensor& parameter : copy->parameters()) parameter.add_(1);
    }
    EXPECT_TRUE(torch::equal(encoder(x), before));
  }
}

TEST(NnEncoder, OptionsHaveNames) {
  for (const char* name : {"post", "pre", "phydi"}) EXPECT_STREQ(nn::name(nn::parse_norm_style(name)), name);
  for (const char* name : {"full", "partial"}) EXPECT_STREQ(nn::name(nn::parse_scope(name)), name);
  for (const char* name : {"automatic", "componentwise", "real"})
    EXPECT_STREQ(nn::name(nn::parse_attention_kind(name)), name);
  for (const char* name : {"inside", "printed"}) EXPECT_STREQ(nn::name(nn::parse_head_split(name)), name);
  EXPECT_THROW(nn::parse_norm_style("layer"), std::invalid_argument);
}

}  // namespace
}  // namespace quatrain
