#include "quatrain/nn/words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include "nn/reference.h"
#include "quatrain/nn/encoder.h"

namespace quatrain {
namespace {

using test::relative_error;

at::Tensor padding_after(const std::vector<int64_t>& lengths, int64_t longest) {
  return torch::arange(longest).unsqueeze(0) >= torch::tensor(lengths).unsqueeze(1);
}

TEST(NnWords, RowsAreTheWordsInTheirOrderAndPlacesHaveZerosBetweenThem) {
  const nn::Words words(torch::tensor({{false, true, false}, {true, true, false}}));
  const at::Tensor places = torch::arange(24, torch::kDouble).view({2, 4, 3}).transpose(1, 2);
  const at::Tensor rows = words.rows(places);
  EXPECT_TRUE(rows.equal(torch::stack({places[0][0], places[0][2], places[1][2]}).unsqueeze(0)));
  EXPECT_TRUE(words.places(rows).equal(places * words.padding().logical_not().unsqueeze(2)));
}

TEST(NnWords, EachIsTheGradientOfTheOther) {
  const nn::Words words(padding_after({3, 0, 1}, 4));
  const at::Tensor x = torch::randn({3, 4, 2, 3}, torch::kDouble).requires_grad_();
  const at::Tensor rows = words.rows(x * x);
  EXPECT_EQ(rows.sizes(), (std::vector<int64_t>{1, 4, 2, 3}));
  const at::Tensor y = words.places(rows * rows);
  const at::Tensor weight = torch::randn({3, 4, 2, 3}, torch::kDouble);
  const at::Tensor first = torch::autograd::grad({(y * weight).sum()}, {x}, {}, true, true)[0];
  const at::Tensor words_alone = words.padding().logical_not().view({3, 4, 1, 1}) * weight;
  EXPECT_LT(relative_error(first, 4 * x.pow(3) * words_alone), 1e-14);
  const at::Tensor second = torch::autograd::grad({first.sum()}, {x})[0];
  EXPECT_LT(relative_error(second, 12 * x.pow(2) * words_alone), 1e-14);
}

TEST(NnWords, LittlePaddingIsLeftIn) {
  const at::Tensor x = torch::randn({2, 8, 3});
  for (const auto& padding : {at::Tensor(), padding_after({8, 8}, 8), padding_after({5, 8}, 8)}) {
    const nn::Words words(padding);
    EXPECT_TRUE(words.rows(x).is_same(x));
    EXPECT_TRUE(words.places(x).is_same(x));
  }
  EXPECT_EQ(nn::Words(padding_after({4, 8}, 8)).rows(x).size(1), 12);
}

TEST(NnWords, NoWordsAndNoTexts) {
  const nn::Words none(torch::ones({2, 3}, torch::kBool));
  EXPECT_EQ(none.rows(torch::randn({2, 3, 4})).sizes(), (std::vector<int64_t>{1, 0, 4}));
  EXPECT_TRUE(none.places(torch::zeros({1, 0, 4})).equal(torch::zeros({2, 3, 4})));
  const at::Tensor x = torch::randn({0, 3, 4});
  EXPECT_EQ(nn::Words(torch::ones({0, 3}, torch::kBool)).rows(x).numel(), 0);
}

TEST(NnWords, WrongSizesAreNamed) {
  const auto message = [](const auto& call) {
    try {
      call();
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string();
  };
  using testing::HasSubstr;
  EXPECT_THAT(message([] { nn::Words(torch::zeros({2, 3})); }), HasSubstr("padding must be bool (B, L)"));
  const nn::Words words(padding_after({1, 2}, 3));
  EXPECT_THAT(message([&] {
                words.rows(torch::zeros({3, 2, 4}));
              }),
              HasSubstr("sizes [2, 3], got [3, 2, 4]"));
  EXPECT_THAT(message([&] { words.places(torch::zeros({1, 4, 4})); }), HasSubstr("the 3 words of the index"));
}

// What a batch without its padding computes is what each text alone does, also where padding stands between
// words.
TEST(NnWords, AnEncoderSeesEachTextAsIfAlone) {
  torch::manual_seed(0);
  const test::DefaultDtype guard(torch::kDouble);
  const std::vector<int64_t> lengths{7, 2, 5, 1};
  const at::Tensor padding = padding_after(lengths, 7).flip({1});
  for (const char* algebra : {"real", "quaternion", "phm(4)"})
    for (const nn::NormStyle style : {nn::NormStyle::post, nn::NormStyle::pre, nn::NormStyle::phydi})
      for (const bool causal : {false, true}) {
        nn::TransformerEncoder encoder(nn::TransformerEncoderOptions(
            nn::TransformerEncoderLayerOptions(32, 2).feed_forward(64).algebra(algebra).norm(style).dropout(
                0),
            2));
        if (style == nn::NormStyle::phydi)
          for (auto& parameter : encoder->named_parameters())
            if (parameter.key().find("alpha") != std::string::npos) parameter->data().fill_(0.5);
        const at::Tensor x = torch::randn({4, 7, 32}).requires_grad_(),
                         weight = torch::randn({4, 7, 32}) * padding.logical_not().unsqueeze(2);
        const auto run = [&](const at::Tensor& y) {
          encoder->zero_grad();
          x.mutable_grad().reset();
          (y * weight).sum().backward();
          std::vector<at::Tensor> found{y.detach() * padding.logical_not().unsqueeze(2), x.grad().clone()};
          for (const at::Tensor& parameter : encoder->parameters()) found.push_back(parameter.grad().clone());
          return found;
        };
        std::vector<at::Tensor> texts;
        for (int64_t text = 0; text < 4; ++text) {
          const int64_t length = lengths[static_cast<size_t>(text)];
          const at::Tensor y =
              encoder->forward(x.narrow(0, text, 1).narrow(1, 7 - length, length), {}, causal);
          texts.push_back(torch::constant_pad_nd(y, {0, 0, 7 - length, 0}));
        }
        const auto expected = run(torch::cat(texts)), found = run(encoder->forward(x, padding, causal));
        for (size_t i = 0; i < expected.size(); ++i)
          // Not relative: the gradient of a key\'s bias is zero where the softmax does not see it.
          EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), 1e-10)
              << algebra << " " << nn::name(style) << " " << i;
      }
}

}  // namespace
}  // namespace quatrain
