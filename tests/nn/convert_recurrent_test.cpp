#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>

#include "nn/layers.h"
#include "ops/reference.h"
#include "quatrain/nn/convert.h"
#include "quatrain/nn/recurrent.h"
#include "quatrain/nn/recurrent_cell.h"

namespace quatrain {
namespace {

using nn::ConversionReport;
using nn::convert;
using nn::fill_nearest;
using test::relative_error;
using ::testing::HasSubstr;

template <class... Rest>
at::Tensor outputs(const std::tuple<at::Tensor, Rest...>& result) {
  return std::get<0>(result);
}

std::string refusal(const torch::nn::Module& real, torch::nn::Module& twin) {
  try {
    fill_nearest(real, twin);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "not refused";
}

template <class Ours, class OurOptions, class Theirs, class TheirOptions>
void take_torchs(const OurOptions& our_options, const TheirOptions& their_options) {
  torch::manual_seed(1);
  for (const bool two_ways : {false, true})
    for (const bool bias : {false, true}) {
      Ours ours(OurOptions(our_options).algebra("real").num_layers(2).bidirectional(two_ways).bias(bias));
      Theirs theirs(TheirOptions(their_options).num_layers(2).bidirectional(two_ways).bias(bias));
      const ConversionReport report = fill_nearest(*theirs, *ours);
      for (const auto& line : report.layers) EXPECT_LT(line.error.value(), 1e-7) << line.name;
      const at::Tensor x = torch::randn({5, 3, 12});
      EXPECT_LT(relative_error(outputs(ours->forward(x)), outputs(theirs->forward(x))), 1e-6);
    }
}

TEST(ConvertRecurrent, TorchsWeightsAreTaken) {
  take_torchs<nn::LSTM, nn::LSTMOptions, torch::nn::LSTM>(nn::LSTMOptions(12, 8),
                                                          torch::nn::LSTMOptions(12, 8));
  take_torchs<nn::LSTM, nn::LSTMOptions, torch::nn::LSTM>(nn::LSTMOptions(12, 8).proj_size(4),
                                                          torch::nn::LSTMOptions(12, 8).proj_size(4));
  take_torchs<nn::GRU, nn::GRUOptions, torch::nn::GRU>(nn::GRUOptions(12, 8), torch::nn::GRUOptions(12, 8));
  take_torchs<nn::RNN, nn::RNNOptions, torch::nn::RNN>(
      nn::RNNOptions(12, 8).nonlinearity(torch::kReLU),
      torch::nn::RNNOptions(12, 8).nonlinearity(torch::kReLU));
}

// The real layer has the matrices of one over an algebra: what comes out computes the same, state by state.
template <class Layer, class Options>
void recover(const Options& of_layer) {
  torch::manual_seed(2);
  for (const std::string algebra : {"quaternion", "phm(4)", "wkp(2)"})
    for (const bool two_ways : {false, true}) {
      SCOPED_TRACE(algebra + (two_ways ? ", two ways" : ""));
      const auto options = Options(of_layer).num_layers(2).bidirectional(two_ways).direction_first(two_ways);
      Layer source(Options(options).algebra(algebra));
      {
        const torch::NoGradGuard no_grad;
        for (auto& item : source->named_parameters())
          if (item.key().starts_with("bias")) item.value().normal_();
      }
      Layer real(Options(of_layer).num_layers(2).bidirectional(two_ways).algebra("real"));
      fill_nearest(*source, *real);
      const at::Tensor x = torch::randn({5, 3, 12});
      const auto expected = source->forward(x);
      EXPECT_LT(relative_error(outputs(real->forward(x)), outputs(expected)), 1e-5);
      const ConversionReport report = convert(*real, nn::ConvertOptions(nn::AlgebraSpec(algebra)));
      EXPECT_EQ(real->options.algebra().text(), source->options.algebra().text());
      EXPECT_EQ(real->options.direction_first(), two_ways);
      EXPECT_EQ(report.layers.size(), source->weights().size());
      for (const auto& line : report.layers) EXPECT_LT(line.error.value(), 1e-5) << line.name;
      EXPECT_EQ(report.after, nn::parameter_report(*source).total);
      EXPECT_LT(relative_error(outputs(real->forward(x)), outputs(expected)), 1e-5);
    }
}

TEST(ConvertRecurrent, WeightsOfAnAlgebraAreFound) {
  recover<nn::LSTM>(nn::LSTMOptions(12, 8));
  recover<nn::LSTM>(nn::LSTMOptions(12, 16).proj_size(8));
  recover<nn::GRU>(nn::GRUOptions(12, 8));
  recover<nn::RNN>(nn::RNNOptions(12, 8));
}

TEST(ConvertRecurrent, TorchsMatricesOfAnAlgebraAreFound) {
  torch::manual_seed(3);
  nn::LSTM source(nn::LSTMOptions(8, 16)), real(nn::LSTMOptions(8, 16).algebra("real"));
  {
    const torch::NoGradGuard no_grad;
    for (const char* bias : {"bias_ih_l0", "bias_hh_l0"}) source->named_parameters()[bias].normal_();
  }
  fill_nearest(*source, *real);
  torch::nn::LSTM theirs(torch::nn::LSTMOptions(8, 16));
  {
    const torch::NoGradGuard no_grad;
    auto to = theirs->named_parameters();
    for (const auto& item : real->named_parameters()) {
      const std::string key = item.key();
      at::Tensor& into = to[key[0] == 'S' ? "weight" + key.substr(1) : key];
      into.copy_(item.value().view_as(into));
    }
  }
  nn::LSTM found(nn::LSTMOptions(8, 16));
  fill_nearest(*theirs, *found);
  for (const auto& item : source->named_parameters())
    EXPECT_LT(relative_error(found->named_parameters()[item.key()], item.value()), 1e-6) << item.key();
  const at::Tensor x = torch::randn({5, 3, 8});
  EXPECT_LT(relative_error(outputs(found->forward(x)), outputs(theirs->forward(x))), 1e-5);
}

TEST(ConvertRecurrent, CellsAreConverted) {
  torch::manual_seed(4);
  const at::Tensor x = torch::randn({3, 12}), h = torch::randn({3, 8});
  nn::GRUCell source(nn::GRUCellOptions(12, 8)), real(nn::GRUCellOptions(12, 8).algebra("real"));
  fill_nearest(*source, *real);
  const at::Tensor expected = source->forward(x, h);
  EXPECT_LT(relative_error(real->forward(x, h), expected), 1e-5);
  EXPECT_EQ(convert(*real, "quaternion").converted(), 2);
  EXPECT_LT(relative_error(real->forward(x, h), expected), 1e-5);
  nn::LSTMCell ours(nn::LSTMCellOptions(12, 8).algebra("real"));
  torch::nn::LSTMCell theirs(12, 8);
  fill_nearest(*theirs, *ours);
  EXPECT_LT(relative_error(outputs(ours->forward(x)), outputs(theirs->forward(x))), 1e-6);
}

TEST(ConvertRecurrent, OfOneAlgebraTheyAreCopied) {
  const auto options = nn::LSTMOptions(8, 8).bidirectional(true).algebra("phm(4, trained_rank=6)");
  nn::LSTM from(options), to(options);
  EXPECT_EQ(fill_nearest(*from, *to).converted(), 0);
  for (const auto& item : from->named_parameters())
    EXPECT_TRUE(torch::equal(to->named_parameters()[item.key()], item.value())) << item.key();
}

// One frozen matrix of all gates is as many frozen ones; names of parameters and lines are the new layer's.
TEST(ConvertRecurrent, FrozenWeightsStayInAllGates) {
  nn::LSTM layer(nn::LSTMOptions(8, 8).algebra("real"));
  layer->named_parameters()["S_hh_l0"].set_requires_grad(false);
  const ConversionReport report = convert(*layer, "phm(4)");
  ASSERT_EQ(report.layers.size(), 8u);
  EXPECT_EQ(report.layers[1].name, "S_if_l0");
  EXPECT_EQ(report.layers[1].before, 8 * 8);
  EXPECT_EQ(report.before, 2 * 4 * 8 * 8 + 2 * 4 * 8);
  for (const auto& item : layer->named_parameters())
    EXPECT_EQ(item.value().requires_grad(),
              item.key().find("_h") == std::string::npos || item.key().starts_with("bias"))
        << item.key();
  nn::LSTM fresh(nn::LSTMOptions(8, 8).algebra("real"));
  EXPECT_EQ(convert(*fresh, nn::ConvertOptions("phm(4)").fresh(true)).layers.size(), 8u);
}

TEST(ConvertRecurrent, WhatComputesSomethingElseIsRefused) {
  const auto options = nn::LSTMOptions(8, 8);
  nn::LSTM layer(options);
  EXPECT_THAT(refusal(*torch::nn::LSTM(torch::nn::LSTMOptions(8, 8).proj_size(4)), *layer),
              HasSubstr("must have one proj_size in both models, got 4 and 0"));
  EXPECT_THAT(refusal(*torch::nn::GRU(8, 8), *layer), HasSubstr("must be one kind of recurrent layer"));
  EXPECT_THAT(refusal(*torch::nn::Linear(8, 8), *layer), HasSubstr("must be one kind of recurrent layer"));
  EXPECT_THAT(refusal(*torch::nn::RNN(torch::nn::RNNOptions(8, 8).nonlinearity(torch::kReLU)),
                      *nn::RNN(nn::RNNOptions(8, 8))),
              HasSubstr("(rnn_relu)"));
  EXPECT_THAT(refusal(*nn::LSTM(nn::LSTMOptions(8, 8).algebra("real").bidirectional(true)),
                      *nn::LSTM(nn::LSTMOptions(8, 8).bidirectional(true))),
              HasSubstr("build the twin with direction_first(true)"));
  EXPECT_THAT(refusal(*torch::nn::LSTM(torch::nn::LSTMOptions(8, 8).bidirectional(true)), *layer),
              HasSubstr("number of directions"));
  EXPECT_THAT(refusal(*torch::nn::LSTM(8, 12), *layer), HasSubstr("must have one size in both models"));
  EXPECT_THAT(refusal(*torch::nn::LSTM(12, 8), *layer), HasSubstr("must have one size in both models"));
  EXPECT_THAT(refusal(*torch::nn::LSTM(torch::nn::LSTMOptions(8, 8).bias(false)), *layer),
              HasSubstr("'bias_ih_l0' is in the twin, not in the real model"));
  EXPECT_THAT(refusal(*torch::nn::LSTM(torch::nn::LSTMOptions(8, 8).num_layers(2)), *layer),
              HasSubstr("'bias_hh_l1' is in the real model, not in the twin"));
  nn::LSTM odd(nn::LSTMOptions(8, 6).algebra("real"));  // n divides the rows of all gates, not those of one
  EXPECT_EQ(convert(*odd, "quaternion").layers[0].skipped, "n = 4 does not divide 6");
  nn::LSTM odd_projection(nn::LSTMOptions(8, 8).proj_size(6).algebra("real"));
  EXPECT_EQ(convert(*odd_projection, "quaternion").layers[0].skipped, "n = 4 does not divide 6");
  torch::nn::Sequential model(torch::nn::LSTM(8, 8), torch::nn::Linear(8, 8));
  EXPECT_THAT(test::of(convert(*model, "quaternion"), "0").skipped, HasSubstr("take fill_nearest"));
}

}  // namespace
}  // namespace quatrain
