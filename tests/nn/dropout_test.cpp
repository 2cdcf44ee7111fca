#include "quatrain/nn/dropout.h"

#include <gtest/gtest.h>
#include <torch/enum.h>
#include <torch/nn/module.h>
#include <torch/nn/utils/rnn.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>

#include "ops/reference.h"
#include "quatrain/nn/recurrent.h"

namespace quatrain {
namespace {

using test::relative_error;
namespace rnn = torch::nn::utils::rnn;

TEST(NnDropout, PerUnitDropsAllComponentsTogether) {
  torch::manual_seed(0);
  const at::Tensor x = torch::ones({100, 4 * 50});
  const at::Tensor units = nn::dropout(x, 0.3, true, 4, true).view({100, 4, 50});
  for (int c = 1; c < 4; ++c) EXPECT_TRUE(torch::equal(units.select(1, 0), units.select(1, c)));
  EXPECT_NEAR(units.eq(0).to(torch::kFloat).mean().item<float>(), 0.3, 0.03);
  EXPECT_FLOAT_EQ(units.max().item<float>(), 1 / 0.7f);

  const at::Tensor single = nn::dropout(x, 0.3, true, 4, false).view({100, 4, 50});
  EXPECT_FALSE(torch::equal(single.select(1, 0), single.select(1, 1)));
  EXPECT_NEAR(single.eq(0).to(torch::kFloat).mean().item<float>(), 0.3, 0.03);
}

TEST(NnDropout, IsTheIdentityInEvalMode) {
  const at::Tensor x = torch::randn({3, 8});
  nn::Dropout layer(nn::DropoutOptions(0.5).n(4).per_unit(true));
  layer->eval();
  EXPECT_TRUE(torch::equal(layer(x), x));
  layer->train();
  EXPECT_FALSE(torch::equal(layer(x), x));
  EXPECT_THROW(nn::Dropout(nn::DropoutOptions(1.5)), std::invalid_argument);
  EXPECT_THROW(nn::dropout(torch::ones({3, 7}), 0.5, true, 4, true), c10::Error);
}

// What a stack computes is told from its layers alone: at a rate of 1 the second reads zeros.
template <class Layer, class Options>
void check_dropout_of_stacks() {
  for (const bool two_ways : {false, true}) {
    SCOPED_TRACE(two_ways);
    torch::manual_seed(13);
    const auto set = [&](Options options) { return options.bidirectional(two_ways).dropout(1); };
    Layer both(set(Options(8, 16).num_layers(2))), first(set(Options(8, 16))),
        second(set(Options(two_ways ? 32 : 16, 16)));
    const torch::NoGradGuard no_grad;
    for (auto& item : both->named_parameters()) {
      std::string name = item.key();
      char& number = name[name.find("_l") + 2];
      Layer& layer = number == '0' ? first : second;
      number = '0';
      layer->named_parameters()[name].copy_(item.value().normal_(0, 0.4));
    }
    const at::Tensor x = torch::randn({5, 3, 8});
    const auto outputs = [](Layer& layer, const at::Tensor& x) { return std::get<0>(layer->forward(x)); };
    const auto of_packed = [](Layer& layer, const at::Tensor& x) {
      const auto packed = rnn::pack_padded_sequence(x, torch::tensor({5, 4, 2}));
      return std::get<0>(layer->forward_with_packed_input(packed)).data();
    };
    const at::Tensor read = outputs(first, x);  // of one layer nothing is dropped
    const at::Tensor of_zeros = outputs(second, torch::zeros_like(read)), of_read = outputs(second, read);
    EXPECT_GT(relative_error(of_zeros, of_read), 0.01);
    EXPECT_LT(relative_error(outputs(both, x), of_zeros), 1e-5);
    EXPECT_LT(relative_error(of_packed(both, x), of_packed(second, torch::zeros_like(read))), 1e-5);
    both->eval(), first->eval();
    EXPECT_LT(relative_error(outputs(first, x), read), 1e-5);
    EXPECT_LT(relative_error(outputs(both, x), of_read), 1e-5);
  }
}

TEST(NnDropout, OfRecurrentLayersIsBetweenThem) {
  check_dropout_of_stacks<nn::LSTM, nn::LSTMOptions>();
  check_dropout_of_stacks<nn::GRU, nn::GRUOptions>();
  check_dropout_of_stacks<nn::RNN, nn::RNNOptions>();
}

// A second layer that hands on what it reads shows which values were dropped, and what became of the others.
TEST(NnDropout, OfRecurrentLayersHasItsRate) {
  torch::manual_seed(14);
  nn::RNN layer(nn::RNNOptions(8, 64).num_layers(2).bias(false).nonlinearity(torch::kReLU).dropout(0.25));
  const torch::NoGradGuard no_grad;
  auto parameters = layer->named_parameters();
  for (const char* name : {"S_ih_l1", "S_hh_l1"}) parameters[name].zero_();
  parameters["S_ih_l1"][0].copy_(torch::eye(16));
  const at::Tensor x = torch::randn({20, 10, 8});
  const at::Tensor dropped = std::get<0>(layer->forward(x));
  layer->eval();
  const at::Tensor read = std::get<0>(layer->forward(x));
  const at::Tensor shares = dropped.div(read).masked_select(read > 0.1), kept = shares > 0.5;
  EXPECT_GT(shares.numel(), 4000);
  EXPECT_NEAR(kept.to(torch::kFloat).mean().item<float>(), 0.75, 0.03);
  EXPECT_NEAR(shares.masked_select(kept).min().item<float>(), 1 / 0.75, 1e-3);
  EXPECT_NEAR(shares.masked_select(kept).max().item<float>(), 1 / 0.75, 1e-3);
  EXPECT_LT(shares.masked_select(kept.logical_not()).abs().max().item<float>(), 1e-3);
}

}  // namespace
}  // namespace quatrain
