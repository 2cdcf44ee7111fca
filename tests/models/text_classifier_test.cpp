#include "quatrain/models/text_classifier.h"

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim.h>
#include <torch/serialize.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <sstream>

#include "ops/reference.h"
#include "quatrain/models/positions.h"
#include "quatrain/nn/parameters.h"

namespace quatrain {
namespace {

using models::TextClassifier;
using models::TextClassifierOptions;
using test::relative_error;

TextClassifierOptions options(const std::string& algebra = "quaternion") {
  return TextClassifierOptions(50, 3).width(32).heads(2).feed_forward(64).layers(2).algebra(algebra);
}

at::Tensor tokens_of(int64_t batch, int64_t length) {
  return torch::randint(1, 50, {batch, length}, torch::kLong);
}

TEST(TextClassifier, GivesLogits) {
  for (const char* algebra : {"real", "quaternion", "phm(2)", "phm(4)", "wkp(4)"})
    for (const nn::NormStyle norm : {nn::NormStyle::pre, nn::NormStyle::post, nn::NormStyle::phydi}) {
      TextClassifier model(options(algebra).norm(norm));
      EXPECT_EQ(model(tokens_of(4, 7)).sizes(), (std::vector<int64_t>{4, 3}));
    }
}

TEST(TextClassifier, MorePaddingChangesNothing) {
  torch::manual_seed(0);
  for (const char* algebra : {"real", "quaternion", "phm(4)"}) {
    TextClassifier model(options(algebra));
    model->eval();
    const at::Tensor tokens = tokens_of(3, 6);
    tokens[1].slice(0, 4).zero_();
    const at::Tensor expected = model(tokens);
    const at::Tensor longer = torch::cat({tokens, torch::zeros({3, 5}, torch::kLong)}, 1);
    EXPECT_LT(relative_error(model(longer), expected), 1e-5) << algebra;
    // The mask decides, not the tokens below it.
    const at::Tensor other = longer.clone();
    other.slice(1, 6).fill_(7);
    EXPECT_LT(relative_error(model(other, longer.eq(0)), expected), 1e-5) << algebra;
    EXPECT_GT(relative_error(model(other), expected), 1e-3) << algebra;
    EXPECT_LT(relative_error(model(tokens.slice(0, 1, 2).slice(1, 0, 4)), expected.slice(0, 1, 2)), 1e-5)
        << "alone";
  }
}

TEST(TextClassifier, ATextOfNothingButPaddingGivesTheHeadsBias) {
  torch::manual_seed(1);
  TextClassifier model(options());
  {
    const torch::NoGradGuard no_grad;
    model->head->bias.normal_();
  }
  const at::Tensor tokens = tokens_of(2, 5);
  tokens[0].zero_();
  const at::Tensor logits = model(tokens);
  EXPECT_TRUE(torch::allclose(logits[0], model->head->bias));
  logits.sum().backward();
  for (const auto& item : model->named_parameters())
    EXPECT_TRUE(!item->grad().defined() || item->grad().isfinite().all().item<bool>()) << item.key();
}

TEST(TextClassifier, WordOrderCounts) {
  torch::manual_seed(2);
  TextClassifier model(options());
  model->eval();
  const at::Tensor tokens = tokens_of(1, 6);
  EXPECT_GT(relative_error(model(tokens.flip(1)), model(tokens)), 1e-3);
}

TEST(TextClassifier, LongTextsComputeTheirPositions) {
  torch::manual_seed(3);
  TextClassifier kept(options().max_length(512)), computed(options().max_length(4));
  const torch::NoGradGuard no_grad;
  for (const auto& item : kept->named_parameters()) computed->named_parameters()[item.key()].copy_(*item);
  kept->eval();
  computed->eval();
  const at::Tensor tokens = tokens_of(2, 9);
  EXPECT_TRUE(torch::equal(kept(tokens), computed(tokens)));
}

TEST(TextClassifier, SinusoidsAreTensor2Tensors) {
  const at::Tensor positions = models::sinusoidal_positions(20, 9);
  EXPECT_TRUE(models::sinusoidal_positions(3, 9, 17).equal(positions.narrow(0, 17, 3)));
  for (const int64_t p : {0, 1, 19})
    for (int64_t wave = 0; wave < 4; ++wave) {
      const double angle = static_cast<double>(p) * std::pow(1e-4, static_cast<double>(wave) / 3);
      EXPECT_NEAR(positions[p][wave].item<double>(), std::sin(angle), 1e-6);
      EXPECT_NEAR(positions[p][4 + wave].item<double>(), std::cos(angle), 1e-6);
    }
  EXPECT_EQ(positions.select(1, 8).abs().sum().item<float>(), 0);
}

// Where no gradient is asked for a few words are placed without operators.
TEST(TokenInputs, WordsHaveTheSameBitsWithoutAGradient) {
  torch::manual_seed(6);
  for (const char* algebra : {"real", "quaternion", "phm(4)"})
    for (const auto positions : {models::Positions::sinusoidal, models::Positions::learned})
      for (const bool scale : {true, false}) {
        models::TokenInputs inputs(
            models::TokenInputsOptions(20, 16).algebra(algebra).positions(positions).scale(scale).max_length(
                9));
        inputs->eval();
        const at::Tensor tokens = torch::randint(20, {3, 4}, torch::kLong);
        {
          // More words than are placed so, in parts.
          const at::Tensor many = tokens.repeat({400, 1});
          const torch::NoGradGuard no_grad;
          EXPECT_TRUE(torch::equal(inputs(many).narrow(0, 6, 3), inputs(tokens)));
        }
        for (const int64_t first : {0, 5}) {
          const at::Tensor expected = inputs(tokens, first).detach();
          const torch::NoGradGuard no_grad;
          const at::Tensor weights = inputs->embedding->S.clone();
          EXPECT_TRUE(torch::allclose(inputs(tokens, first), expected, 1e-6, 1e-7)) << algebra;
          if (std::string(algebra) == "real") {
            EXPECT_TRUE(torch::equal(inputs(tokens, first), expected));
            EXPECT_TRUE(torch::equal(inputs(tokens.t().to(torch::kInt).t(), first), expected));
          }
          EXPECT_TRUE(torch::equal(inputs->embedding->S, weights));
        }
        const torch::NoGradGuard no_grad;
        EXPECT_THROW(inputs(tokens + 20), c10::Error);
        EXPECT_THROW(inputs(tokens - 21), c10::Error);
      }
}

TEST(TextClassifier, GradientsReachEveryParameter) {
  torch::manual_seed(4);
  for (const auto& o : {options("real"), options("quaternion"), options("phm(4)").scope(nn::Scope::partial),
                        options("quaternion").pretrained_width(10)}) {
    TextClassifier model(o);
    torch::nn::functional::cross_entropy(model(tokens_of(8, 6)), torch::randint(0, 3, {8}, torch::kLong))
        .backward();
    for (const auto& item : model->named_parameters())
      if (!item.key().ends_with("key.bias")) {  // the softmax does not see it
        EXPECT_GT(item->grad().abs().sum().item<double>(), 0) << item.key();
      }
    EXPECT_EQ(model->embedding->weight.grad()[0].abs().sum().item<double>(), 0) << "padding learns nothing";
  }
}

TEST(TextClassifier, PretrainedEmbeddingsCanBeFrozen) {
  torch::manual_seed(5);
  TextClassifier model(options().pretrained_width(10).freeze_pretrained(true));
  const at::Tensor vectors = torch::randn({50, 10});
  model->set_embeddings(vectors);
  EXPECT_TRUE(torch::equal(model->embedding->weight.slice(0, 1), vectors.slice(0, 1)));
  EXPECT_EQ(model->embedding->weight[0].abs().sum().item<double>(), 0);
  model(tokens_of(2, 4)).sum().backward();
  EXPECT_FALSE(model->embedding->weight.grad().defined());
  const auto copy = std::dynamic_pointer_cast<models::TextClassifierImpl>(model->clone());
  EXPECT_FALSE(copy->embedding->weight.requires_grad());
  EXPECT_THROW(model->set_embeddings(torch::randn({50, 11})), c10::Error);
  EXPECT_THROW(TextClassifier(options().freeze_pretrained(true)), std::invalid_argument);
}

TEST(TextClassifier, EmbeddingsHaveUnitVarianceWhenTheyEnter) {
  torch::manual_seed(6);
  for (const bool scale : {false, true}) {
    TextClassifier model(TextClassifierOptions(1000, 2).embedding_scale(scale));
    const double variance = model->embedding->weight.detach().square().mean().item<double>();
    EXPECT_NEAR(variance * (scale ? 128 : 1), 1, 0.03);
  }
}

TEST(TextClassifier, SizesAreThePapers) {
  const auto report = [](const char* algebra, nn::NormStyle norm = nn::NormStyle::pre) {
    return nn::parameter_report(*TextClassifier(TextClassifierOptions(100, 2).algebra(algebra).norm(norm)));
  };
  const auto real = report("real"), quaternion = report("quaternion"), phm = report("phm(4)");
  EXPECT_EQ(real.encoder, 396544 + 256);  // with the final norm
  EXPECT_EQ(quaternion.encoder, 101632 + 256);
  EXPECT_EQ(phm.encoder, 102400 + 256);
  EXPECT_EQ(real.embeddings, 100 * 128);
  EXPECT_EQ(real.total, real.encoder + real.embeddings + 128 * 2 + 2);
  EXPECT_EQ(report("real", nn::NormStyle::post).encoder, 396544);
  const TextClassifier partial(TextClassifierOptions(100, 2).algebra("quaternion").scope(nn::Scope::partial));
  EXPECT_EQ(nn::parameter_report(*partial).encoder, real.encoder - 2 * 4 * 128 * 128 * 3 / 4);
}

TEST(TextClassifier, ClonesMovesSavesAndLoads) {
  torch::manual_seed(7);
  for (const char* algebra : {"real", "quaternion", "phm(4)"}) {
    TextClassifier model(options(algebra)), other(options(algebra));
    model->eval();
    other->eval();
    const at::Tensor tokens = tokens_of(3, 6), expected = model(tokens);
    const auto copy = std::dynamic_pointer_cast<models::TextClassifierImpl>(model->clone());
    EXPECT_TRUE(torch::equal(copy->forward(tokens), expected));
    copy->to(torch::kDouble);
    EXPECT_LT(relative_error(copy->forward(tokens), expected), 1e-5);
    copy->to(torch::kBFloat16);
    EXPECT_LT(relative_error(copy->forward(tokens), expected), 0.05);
    EXPECT_TRUE(torch::equal(model(tokens), expected));

    other(tokens);  // fills the cache of prepared weights
    std::stringstream stream;
    torch::save(model, stream);
    torch::load(other, stream);
    EXPECT_TRUE(torch::equal(other(tokens), expected)) << algebra;
  }
}

TEST(TextClassifier, LearnsAToyTask) {
  torch::manual_seed(8);
  TextClassifier model(options().dropout(0));
  torch::optim::Adam optimizer(model->parameters(), 3e-3);
  const at::Tensor tokens = tokens_of(64, 6),
                   labels = tokens.select(1, 2).remainder(3);  // the third word decides
  double loss_value = 0;
  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    const at::Tensor loss = torch::nn::functional::cross_entropy(model(tokens), labels);
    loss.backward();
    optimizer.step();
    loss_value = loss.item<double>();
  }
  EXPECT_LT(loss_value, 0.2);
}

TEST(TextClassifier, RefusesBadInput) {
  TextClassifier model(options());
  EXPECT_THROW(model(torch::zeros({3}, torch::kLong)), c10::Error);
  EXPECT_THROW(model(tokens_of(2, 4), torch::zeros({2, 5}, torch::kBool)), c10::Error);
  EXPECT_THROW(TextClassifier(options().width(30)), std::invalid_argument);
  EXPECT_THROW(TextClassifier(TextClassifierOptions(5, 2).padding_id(5)), std::invalid_argument);
}

}  // namespace
}  // namespace quatrain
