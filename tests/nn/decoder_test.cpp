#include "quatrain/nn/decoder.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/transformerlayer.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "nn/reference.h"
#include "quatrain/nn/parameters.h"

namespace quatrain {
namespace {

using test::relative_error;

nn::TransformerDecoderLayerOptions layer_options(const std::string& algebra,
                                                 nn::NormStyle norm = nn::NormStyle::post) {
  return nn::TransformerDecoderLayerOptions(32, 2).feed_forward(64).algebra(algebra).norm(norm).dropout(0);
}

nn::TransformerDecoder decoder(const nn::TransformerDecoderLayerOptions& options, int64_t layers = 2) {
  return nn::TransformerDecoder(nn::TransformerDecoderOptions(options, layers));
}

const std::vector<nn::NormStyle> kStyles{nn::NormStyle::post, nn::NormStyle::pre, nn::NormStyle::phydi};

void copy(const nn::Linear& to, const at::Tensor& weight, const at::Tensor& bias) {
  to->S.copy_(weight.unsqueeze(0));
  to->bias.copy_(bias);
}

void copy(const nn::MultiheadAttention& to, const torch::nn::MultiheadAttention& from) {
  const auto weights = from->in_proj_weight.chunk(3), biases = from->in_proj_bias.chunk(3);
  if (to->packed) {
    copy(to->packed, from->in_proj_weight, from->in_proj_bias);
  } else {
    copy(to->query, weights[0], biases[0]);
    copy(to->key, weights[1], biases[1]);
    copy(to->value, weights[2], biases[2]);
  }
  copy(to->output, from->out_proj->weight, from->out_proj->bias);
}

TEST(NnDecoder, WeightsComeWithTheSameOutput) {
  torch::manual_seed(7);
  const at::Tensor x = torch::randn({2, 5, 32}), memory = torch::randn({2, 7, 32}),
                   padding = torch::arange(7) >= torch::tensor({7, 4}).unsqueeze(1);
  for (const auto& [algebra, maps] : {std::pair{"real", 1}, {"quaternion", 4}, {"phm(4)", 1}})
    for (const nn::NormStyle norm : kStyles) {
      nn::TransformerDecoderLayer layer(layer_options(algebra, norm));
      layer->eval();
      if (norm == nn::NormStyle::phydi) layer->alpha.detach().fill_(0.5);
      const auto [y, weights] = layer->forward_with_weights(x, memory, {}, padding);
      EXPECT_LT(relative_error(y, layer->forward(x, memory, {}, padding)), 1e-6) << algebra;
      EXPECT_EQ(weights.sizes(), (std::vector<int64_t>{2, 2, maps, 5, 7})) << algebra;
      EXPECT_LT(relative_error(weights.sum(4), torch::ones({2, 2, maps, 5})), 1e-6) << algebra;
      EXPECT_EQ(weights[1].narrow(3, 4, 3).abs().max().item<double>(), 0) << algebra;
    }
}

TEST(NnDecoder, OneComponentIsTorchsDecoderLayer) {
  torch::manual_seed(0);
  for (const bool packed : {false, true}) {
    nn::TransformerDecoderLayer ours(layer_options("real").packed(packed));
    torch::nn::TransformerDecoderLayer theirs(
        torch::nn::TransformerDecoderLayerOptions(32, 2).dim_feedforward(64).dropout(0));
    const torch::NoGradGuard no_grad;
    for (const at::Tensor& parameter : theirs->parameters()) parameter.normal_(0, 0.2);
    copy(ours->attention, theirs->self_attn);
    copy(ours->cross_attention, theirs->multihead_attn);
    copy(ours->feed_forward->linear1, theirs->linear1->weight, theirs->linear1->bias);
    copy(ours->feed_forward->linear2, theirs->linear2->weight, theirs->linear2->bias);
    for (const auto& [to, from] :
         {std::pair{ours->norm1, theirs->norm1}, std::pair{ours->norm2, theirs->norm2},
          std::pair{ours->norm3, theirs->norm3}}) {
      to->weight.copy_(from->weight);
      to->bias.copy_(from->bias);
    }
    ours->eval();
    theirs->eval();
    const at::Tensor x = torch::randn({3, 6, 32}), memory = torch::randn({3, 5, 32});
    const at::Tensor padding = torch::arange(5).unsqueeze(0) >= torch::tensor({5, 3, 1}).unsqueeze(1);
    const at::Tensor causal = torch::full({6, 6}, -INFINITY).triu(1);
    const at::Tensor expected =
        theirs(x.transpose(0, 1), memory.transpose(0, 1), causal, at::Tensor(), at::Tensor(), padding)
            .transpose(0, 1);
    EXPECT_LT(relative_error(ours(x, memory, at::Tensor(), padding), expected), 1e-6);
  }
}

TEST(NnDecoder, NormStylesAreTheFormulas) {
  torch::manual_seed(1);
  const test::DefaultDtype guard(torch::kDouble);
  const at::Tensor x = torch::randn({2, 5, 32}), memory = torch::randn({2, 4, 32});
  for (const char* algebra : {"real", "quaternion", "phm(4)"})
    for (const nn::NormStyle style : kStyles)
      for (const bool printed : {false, true}) {
        if (printed && style == nn::NormStyle::pre) continue;
        nn::TransformerDecoderLayer layer(layer_options(algebra, style).printed(printed));
        if (layer->alpha.defined()) {
          EXPECT_TRUE(torch::equal(layer(x, memory), x)) << "alpha starts at zero: the identity";
          const torch::NoGradGuard no_grad;
          layer->alpha.fill_(0.7);
        }
        const auto self = [&](const at::Tensor& v) {
          return layer->attention->self_attention(v, {}, {}, true);
        };
        const auto across = [&](const at::Tensor& v) {
          return std::get<0>(layer->cross_attention->forward(v, memory, memory));
        };
        at::Tensor y, z, expected;
        switch (style) {
          case nn::NormStyle::post:
            y = layer->norm1(x + self(x));
            z = layer->norm2((printed ? x : y) + across(y));
            expected = layer->norm3((printed ? x : z) + layer->feed_forward(z));
            break;
          case nn::NormStyle::pre:
            y = x + self(layer->norm1(x));
            z = y + across(layer->norm2(y));
            expected = z + layer->feed_forward(layer->norm3(z));
            break;
          case nn::NormStyle::phydi:
            y = x + 0.7 * self(x);
            z = (printed ? x : y) + 0.7 * across(y);
            expected = (printed ? x : z) + 0.7 * layer->feed_forward(z);
            break;
        }
        EXPECT_LT(relative_error(layer(x, memory), expected), 1e-12) << algebra << " " << nn::name(style);
      }
}

TEST(NnDecoder, AWordSeesNoneThatFollows) {
  torch::manual_seed(2);
  for (const char* algebra : {"real", "quaternion", "phm(4)"})
    for (const nn::NormStyle style : kStyles) {
      nn::TransformerDecoder layers = decoder(layer_options(algebra, style));
      layers->eval();
      const at::Tensor x = torch::randn({2, 6, 32}), memory = torch::randn({2, 4, 32});
      const at::Tensor other = torch::cat({x.narrow(1, 0, 3), torch::randn({2, 3, 32})}, 1);
      EXPECT_LT(relative_error(layers(other, memory).narrow(1, 0, 3), layers(x, memory).narrow(1, 0, 3)),
                1e-6);
      EXPECT_LT(relative_error(layers(x.narrow(1, 0, 3), memory), layers(x, memory).narrow(1, 0, 3)), 1e-5);
    }
}

TEST(NnDecoder, RealAttentionServesBothPlaces) {
  const nn::TransformerDecoderLayer layer(
      layer_options("quaternion").attention(nn::AttentionKind::real).packed(true));
  EXPECT_EQ(layer->attention->kind(), nn::AttentionKind::real);
  EXPECT_EQ(layer->cross_attention->kind(), nn::AttentionKind::real);
  EXPECT_TRUE(layer->attention->packed);
  EXPECT_FALSE(layer->cross_attention->packed);
  const nn::TransformerDecoderLayer partial(layer_options("quaternion").scope(nn::Scope::partial));
  EXPECT_EQ(partial->cross_attention->key->S.size(0), 4);
  EXPECT_EQ(partial->feed_forward->linear1->S.size(0), 1);
}

TEST(NnDecoder, GradientsReachEveryParameter) {
  torch::manual_seed(3);
  for (const char* algebra : {"real", "quaternion", "phm(4)", "wkp(2)"})
    for (const nn::NormStyle style : kStyles) {
      nn::TransformerDecoder layers = decoder(layer_options(algebra, style).dropout(0.1));
      if (style == nn::NormStyle::phydi) {
        const torch::NoGradGuard no_grad;
        for (const auto& item : layers->named_parameters())
          if (item.key().ends_with("alpha")) item->fill_(0.5);
      }
      const at::Tensor x = torch::randn({2, 5, 32});
      (layers(x, torch::randn({2, 4, 32})) * torch::randn_like(x)).sum().backward();
      for (const auto& item : layers->named_parameters()) {
        if (item.key().ends_with("key.bias")) continue;
        EXPECT_GT(item->grad().abs().sum().item<double>(), 0)
            << algebra << " " << nn::name(style) << " " << item.key();
      }
    }
}

TEST(NnDecoder, CloneIsAnother) {
  torch::manual_seed(4);
  nn::TransformerDecoder layers = decoder(layer_options("phm(4)", nn::NormStyle::pre));
  layers->eval();
  const at::Tensor x = torch::randn({2, 5, 32}), memory = torch::randn({2, 4, 32}),
                   before = layers(x, memory);
  const auto copy = std::dynamic_pointer_cast<nn::TransformerDecoderImpl>(layers->clone());
  EXPECT_TRUE(torch::equal(copy->forward(x, memory), before));
  {
    const torch::NoGradGuard no_grad;
    for (const at::Tensor& parameter : copy->parameters()) parameter.add_(1);
  }
  EXPECT_TRUE(torch::equal(layers(x, memory), before));
}

}  // namespace
}  // namespace quatrain
