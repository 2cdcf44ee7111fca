#include "quatrain/nn/recurrent.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/utils/rnn.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <map>
#include <string>

#include "ops/memory/step_memory.h"
#include "ops/reference.h"
#include "quatrain/nn/factorize.h"
#include "quatrain/nn/linear.h"
#include "quatrain/nn/parameters.h"
#include "quatrain/nn/recurrent_cell.h"

namespace quatrain {
namespace {

using nn::GRU;
using nn::GRUOptions;
using nn::LSTM;
using nn::LSTMOptions;
using nn::RNN;
using nn::RNNOptions;
using test::relative_error;
namespace rnn = torch::nn::utils::rnn;

std::string torchs_name(const std::string& key) {
  return key[0] == 'S' ? "weight" + key.substr(1) : key;
}

// torch's parameters become those of a real layer of ours.
template <class Ours, class Theirs>
void take(Ours& ours, Theirs& theirs) {
  const torch::NoGradGuard no_grad;
  auto from = theirs->named_parameters();
  for (auto& parameter : ours->named_parameters())
    parameter.value().copy_(from[torchs_name(parameter.key())].view_as(parameter.value()));
}

template <class Ours, class OurOptions, class Theirs, class TheirOptions>
void compare_with_torch(OurOptions ours_options, TheirOptions options) {
  torch::manual_seed(4);
  for (const bool two_ways : {false, true})
    for (const bool batch_first : {false, true}) {
      Ours ours(ours_options.algebra("real").num_layers(2).bidirectional(two_ways).batch_first(batch_first));
      Theirs theirs(options.num_layers(2).bidirectional(two_ways).batch_first(batch_first));
      take(ours, theirs);
      const at::Tensor x = torch::randn({6, 3, 10});
      const at::Tensor a = x.clone().requires_grad_(), b = x.clone().requires_grad_();
      const at::Tensor y = std::get<0>(ours->forward(a)), wanted = std::get<0>(theirs->forward(b));
      EXPECT_LT(relative_error(y, wanted), 1e-5);
      y.pow(2).sum().backward(), wanted.pow(2).sum().backward();
      EXPECT_LT(relative_error(a.grad(), b.grad()), 1e-4);
      for (const auto& parameter : ours->named_parameters()) {
        const at::Tensor gradient = theirs->named_parameters()[torchs_name(parameter.key())].grad();
        EXPECT_LT(relative_error(parameter.value().grad(), gradient.view_as(parameter.value())), 1e-4)
            << parameter.key();
      }
      // Sequences of their own lengths, in no order.
      const at::Tensor lengths = torch::tensor({2, 6, 4});
      const auto packed = rnn::pack_padded_sequence(torch::randn({6, 3, 10}), lengths, false, false);
      const auto [ours_packed, ours_state] = ours->forward_with_packed_input(packed);
      const auto [theirs_packed, theirs_state] = theirs->forward_with_packed_input(packed);
      EXPECT_LT(relative_error(ours_packed.data(), theirs_packed.data()), 1e-5);
      if constexpr (std::is_same_v<Ours, LSTM>) {
        EXPECT_LT(relative_error(std::get<0>(ours_state), std::get<0>(theirs_state)), 1e-5);
        EXPECT_LT(relative_error(std::get<1>(ours_state), std::get<1>(theirs_state)), 1e-5);
      } else {
        EXPECT_LT(relative_error(ours_state, theirs_state), 1e-5);
      }
    }
}

TEST(LSTM, RealOnesAreTorchs) {
  compare_with_torch<LSTM, LSTMOptions, torch::nn::LSTM>(LSTMOptions(10, 8), torch::nn::LSTMOptions(10, 8));
  compare_with_torch<LSTM, LSTMOptions, torch::nn::LSTM>(LSTMOptions(10, 8).proj_size(3),
                                                         torch::nn::LSTMOptions(10, 8).proj_size(3));
}
TEST(GRU, RealOnesAreTorchs) {
  compare_with_torch<GRU, GRUOptions, torch::nn::GRU>(GRUOptions(10, 8), torch::nn::GRUOptions(10, 8));
}
TEST(RNN, RealOnesAreTorchs) {
  compare_with_torch<RNN, RNNOptions, torch::nn::RNN>(RNNOptions(10, 8), torch::nn::RNNOptions(10, 8));
  compare_with_torch<RNN, RNNOptions, torch::nn::RNN>(
      RNNOptions(10, 8).nonlinearity(torch::kReLU), torch::nn::RNNOptions(10, 8).nonlinearity(torch::kReLU));
}

// A hypercomplex layer is a real one with its H, whose gates are taken out of the components; the gradient of
// H goes on to the parameters that H is made of.
TEST(LSTM, IsARealOneWithItsMatrix) {
  torch::manual_seed(5);
  for (const std::string algebra : {"quaternion", "phm(4)", "wkp(2)", "phm(4, trained_rank=6)"}) {
    SCOPED_TRACE(algebra);
    LSTM ours(LSTMOptions(8, 16).algebra(algebra).forget_bias(1));
    const int64_t n = ours->algebra().n;
    torch::nn::LSTM theirs(torch::nn::LSTMOptions(8, 16));
    auto to = theirs->named_parameters();
    auto from = ours->named_parameters();
    // Rows (n, gates, p) become (gates, n, p).
    const auto by_gate = [&](const at::Tensor& rows) {
      return rows.view({n, 4, 16 / n, -1}).transpose(0, 1).reshape({64, -1});
    };
    const auto weights = ours->weights();
    const auto matrix = [&](size_t first, size_t count) {
      if (count == 1) return by_gate(weights[first]->matrix());
      std::vector<at::Tensor> gates;
      for (size_t k = 0; k < count; ++k) gates.push_back(weights[first + k]->matrix());
      return torch::cat(gates);
    };
    const size_t count = weights.size() / 2;
    const at::Tensor of_input = matrix(0, count), of_state = matrix(count, count);
    {
      const torch::NoGradGuard no_grad;
      to["weight_ih_l0"].copy_(of_input);
      to["weight_hh_l0"].copy_(of_state);
      for (const char* bias : {"bias_ih_l0", "bias_hh_l0"}) to[bias].copy_(by_gate(from[bias]).flatten());
    }
    const at::Tensor x = torch::randn({7, 3, 8}).requires_grad_(),
                     same_x = x.detach().clone().requires_grad_();
    for (const bool training : {false, true}) {
      ours->train(training);
      EXPECT_LT(relative_error(std::get<0>(ours->forward(x)), std::get<0>(theirs->forward(x))), 1e-5);
    }
    std::get<0>(ours->forward(x)).pow(2).sum().backward();
    std::get<0>(theirs->forward(same_x)).pow(2).sum().backward();
    EXPECT_LT(relative_error(x.grad(), same_x.grad()), 1e-4);
    std::vector<at::Tensor> parameters;
    for (const auto* weight : weights)
      for (const auto& part : weight->parts()) parameters.push_back(part.value);
    EXPECT_EQ(parameters.size() + 2, from.size());
    const auto wanted = torch::autograd::grad({of_input, of_state}, parameters,
                                              {to["weight_ih_l0"].grad(), to["weight_hh_l0"].grad()});
    for (size_t i = 0; i < parameters.size(); ++i)
      EXPECT_LT(relative_error(parameters[i].grad(), wanted[i]), 1e-4) << "parameter " << i;
    for (const char* bias : {"bias_ih_l0", "bias_hh_l0"})
      EXPECT_LT(relative_error(by_gate(from[bias].grad()).flatten(), to[bias].grad()), 1e-4) << bias;
    // Each learned A of the gates has factors of its own.
    const auto found = nn::factorize(*ours);
    EXPECT_EQ(found.sound, found.learned);
    EXPECT_EQ(found.learned > 0, algebra == "phm(4)" || algebra == "wkp(2)");
    ours->eval();
    const torch::NoGradGuard no_grad;
    const ops::WayGuard factored(ops::Way::factored);
    EXPECT_LT(relative_error(std::get<0>(ours->forward(x)), std::get<0>(theirs->forward(x))), 1e-4);
  }
}

// Units forget at all speeds up to T steps: log u of u in 1 .. T - 1, anew in each draw.
TEST(LSTM, ChronoStartsTheGates) {
  torch::manual_seed(6);
  const auto check = [](auto layer, int64_t gates, bool memory) {
    const int64_t n = layer->algebra().n;
    std::map<std::string, at::Tensor> before;
    for (int draw = 0; draw < 2; ++draw) {
      for (const auto& [key, bias] : layer->named_parameters().pairs()) {
        if (key.find("bias_hh") == 0) {
          EXPECT_EQ(bias.abs().max().template item<float>(), 0.f) << key;
        }
        if (key.find("bias_ih") != 0) continue;
        const at::Tensor of_gates = bias.detach().view({n, gates, -1}), keeps = of_gates.select(1, 1);
        EXPECT_GE(keeps.min().template item<float>(), 0.f) << key;
        EXPECT_LE(keeps.max().template item<float>(), std::log(49.f)) << key;
        // The mean of u is T / 2, which it would not be if log u were uniform.
        EXPECT_NEAR(keeps.exp().mean().template item<double>(), 25, 8) << key;
        EXPECT_EQ(of_gates.select(1, 0).abs().sum().template item<float>() > 0, memory) << key;
        EXPECT_EQ(of_gates.select(1, 0).equal(-keeps), memory) << key;
        for (int64_t gate = 2; gate < gates; ++gate)
          EXPECT_EQ(of_gates.select(1, gate).abs().max().template item<float>(), 0.f) << key;
        EXPECT_FALSE(before.contains(key) && before[key].equal(keeps)) << key;
        before[key] = keeps.clone();
      }
      layer->reset_parameters();
    }
  };
  for (const std::string algebra : {"real", "quaternion", "phm(4)"}) {
    check(LSTM(LSTMOptions(8, 64).num_layers(2).bidirectional(true).algebra(algebra).chrono(50)), 4, true);
    check(GRU(GRUOptions(8, 64).algebra(algebra).chrono(50)), 3, false);
    check(nn::LSTMCell(nn::LSTMCellOptions(8, 64).algebra(algebra).chrono(50)), 4, true);
  }
}

// PHM table 1: 300 -> 300, one map for each gate and each input.
TEST(LSTM, CountsArePHMs) {
  const auto count = [](const std::string& algebra) {
    return nn::parameter_report(*LSTM(LSTMOptions(300, 300).algebra(algebra).single_bias(true))).total;
  };
  EXPECT_EQ(count("real"), 721200);
  EXPECT_EQ(count("phm(2)"), 8 * (300 * 300 / 2 + 8) + 1200);
  EXPECT_EQ(count("phm(5)"), 8 * (300 * 300 / 5 + 125) + 1200);
  EXPECT_EQ(count("phm(10)"), 8 * (300 * 300 / 10 + 1000) + 1200);
  // With torch's two biases.
  EXPECT_EQ(nn::parameter_report(*LSTM(LSTMOptions(300, 300).algebra("real"))).total, 722400);
}

// Two layers of 64 units in two directions, whose states are projected to 16.
TEST(LSTM, ProjectionsAreCounted) {
  const auto count = [](const LSTMOptions& options) {
    return nn::parameter_report(*LSTM(LSTMOptions(options).num_layers(2).bidirectional(true).bias(false)))
        .total;
  };
  const auto expected = [](int64_t n, int64_t A) {  // A: numbers of the structures of a layer and direction
    const int64_t first = 256 * 32 + 256 * 16 + 16 * 64, second = 256 * 2 * 16 + 256 * 16 + 16 * 64;
    return 2 * (first + second) / n + 4 * A;
  };
  EXPECT_EQ(count(LSTMOptions(32, 64).proj_size(16).algebra("real")), expected(1, 0));
  EXPECT_EQ(count(LSTMOptions(32, 64).proj_size(16)), expected(4, 0));
  EXPECT_EQ(count(LSTMOptions(32, 64).proj_size(16).algebra("phm(2)")), expected(2, 9 * 8));
  EXPECT_EQ(count(LSTMOptions(32, 64).proj_size(16).algebra("phm(2)").gates(nn::Gates::packed)),
            expected(2, 3 * 8));
}

TEST(LSTM, ProjectionsAreDrawnWithTheirOwnFans) {
  torch::manual_seed(10);
  LSTM layer(LSTMOptions(8, 256).proj_size(128).algebra("real"));
  EXPECT_NEAR(layer->named_parameters()["S_hr_l0"].std().item<double>(), std::sqrt(2.0 / (256 + 128)), 0.002);
}

// Not those of all gates, nor of both directions: each gate's map is drawn as a linear layer of its sizes is.
TEST(LSTM, WeightsAreDrawnWithTheFansOfOneGateAndDirection) {
  using nn::Initialiser, nn::Gates;
  for (const auto initialiser : {Initialiser::glorot, Initialiser::polar, Initialiser::polar_paper})
    for (const std::string algebra : {"real", "quaternion", "phm(4)"})
      for (const auto gates : {Gates::packed, Gates::separate}) {
        SCOPED_TRACE(algebra + ", " + nn::name(gates) + ", " + nn::name(initialiser));
        torch::manual_seed(12);
        const LSTM layer(
            LSTMOptions(64, 256).num_layers(2).bidirectional(true).algebra(algebra).gates(gates).initialiser(
                initialiser));
        const auto drawn_for = [&](int64_t in) {
          const auto options = nn::LinearOptions(in, 256).algebra(algebra).initialiser(initialiser);
          return nn::Linear(options)->S.std().item<double>();
        };
        const double first = drawn_for(64), second = drawn_for(512), state = drawn_for(256);
        int seen = 0;
        for (const auto& parameter : layer->named_parameters()) {
          const std::string& name = parameter.key();
          if (name[0] != 'S') continue;
          const double wanted = name[2] == 'h'                         ? state
                                : name.find("l0") != std::string::npos ? first
                                                                       : second;
          EXPECT_NEAR(parameter.value().std().item<double>(), wanted, 0.05 * wanted) << name;
          ++seen;
        }
        EXPECT_EQ(seen, gates == Gates::packed ? 8 : 32);
      }
}

TEST(LSTM, ProjectedStatesGoOn) {
  torch::manual_seed(11);
  for (const std::string algebra : {"quaternion", "phm(4)"}) {
    LSTM layer(LSTMOptions(8, 16).proj_size(4).algebra(algebra).num_layers(2));
    layer->eval();
    const at::Tensor x = torch::randn({6, 2, 8});
    const auto [whole, last] = layer->forward(x);
    const auto [begin, between] = layer->forward(x.narrow(0, 0, 3));
    const auto [end, state] = layer->forward(x.narrow(0, 3, 3), between);
    EXPECT_EQ(std::get<0>(state).sizes(), (std::vector<int64_t>{2, 2, 4}));
    EXPECT_EQ(std::get<1>(state).sizes(), (std::vector<int64_t>{2, 2, 16}));
    EXPECT_LT(relative_error(torch::cat({begin, end}), whole), 1e-5);
    EXPECT_LT(relative_error(std::get<1>(state), std::get<1>(last)), 1e-5);
    EXPECT_EQ(std::get<0>(layer->forward(torch::randn({0, 2, 8}))).sizes(), (std::vector<int64_t>{0, 2, 4}));
    EXPECT_EQ(std::get<0>(layer->forward(torch::randn({3, 0, 8}))).sizes(), (std::vector<int64_t>{3, 0, 4}));
  }
}

// QRNN tables 1 and 2: four layers of N quaternions or 4 N reals, 40 quaternions of acoustic features, a real
// output layer. LSTMs go both ways with the weights of one. How many classes there are is not printed.
// Python counts the largest rows (test_papers.py).
TEST(QRNN, SizesAreThePapers) {
  const auto within = [](int64_t ours, double millions) {
    EXPECT_NEAR(static_cast<double>(ours) / 1e6, millions, 0.015 * millions + 0.05);
  };
  const auto size = [](const torch::nn::Module& layers) { return nn::parameter_report(layers).total; };
  const auto rnn = [&](const std::string& algebra, int64_t width) {
    return size(*RNN(RNNOptions(160, width).algebra(algebra).num_layers(4).single_bias(true))) +
           (width + 1) * 1840;
  };
  within(rnn("real", 256), 1.0), within(rnn("real", 512), 2.8), within(rnn("real", 1024), 9.4);
  within(rnn("quaternion", 256), 0.6), within(rnn("quaternion", 512), 1.4);
  within(rnn("quaternion", 1024), 3.8), within(rnn("quaternion", 2048), 11.2);
  const auto lstm = [&](const std::string& algebra, int64_t width) {
    return size(*LSTM(LSTMOptions(160, width)
                          .algebra(algebra)
                          .num_layers(4)
                          .bidirectional(true)
                          .share_directions(true)
                          .single_bias(true)));
  };
  const auto timit = [&](const std::string& algebra, int64_t width) {
    return lstm(algebra, width) + (2 * width + 1) * 1750;
  };
  within(timit("real", 256), 3.6), within(timit("real", 512), 12.6), within(timit("real", 1024), 46.2);
  within(timit("quaternion", 256), 1.6), within(timit("quaternion", 512), 4.6);
  within(timit("quaternion", 1024), 14.4);
}

TEST(LSTM, SharedDirectionsHaveTheWeightsOfOne) {
  torch::manual_seed(6);
  const auto options = LSTMOptions(8, 16).proj_size(8);
  LSTM shared(LSTMOptions(options).bidirectional(true).share_directions(true)), one(options);
  EXPECT_EQ(shared->parameters().size(), one->parameters().size());
  const torch::NoGradGuard no_grad;
  for (auto& parameter : one->named_parameters())
    parameter.value().copy_(shared->named_parameters()[parameter.key()]);
  const at::Tensor x = torch::randn({5, 2, 8});
  const at::Tensor y = std::get<0>(shared->forward(x)).view({5, 2, 4, 2, 2});
  const at::Tensor there = std::get<0>(one->forward(x)).view({5, 2, 4, 2}),
                   back = std::get<0>(one->forward(x.flip(0))).flip(0).view({5, 2, 4, 2});
  EXPECT_TRUE(y.select(3, 0).allclose(there));
  EXPECT_TRUE(y.select(3, 1).allclose(back));
}

TEST(LSTM, DirectionsMayComeFirst) {
  torch::manual_seed(6);
  const auto options = LSTMOptions(8, 8).num_layers(2).bidirectional(true);
  LSTM inside(options), first(LSTMOptions(options).direction_first(true));
  const torch::NoGradGuard no_grad;
  for (auto& parameter : first->named_parameters())
    parameter.value().copy_(inside->named_parameters()[parameter.key()]);
  const at::Tensor x = torch::randn({5, 2, 8});
  const at::Tensor by_component = std::get<0>(inside->forward(x)).view({5, 2, 4, 2, 2});
  EXPECT_TRUE(std::get<0>(first->forward(x)).equal(by_component.transpose(2, 3).reshape({5, 2, 16})));
}

TEST(LSTM, GoesOnFromAState) {
  torch::manual_seed(7);
  LSTM layer(LSTMOptions(8, 8).num_layers(2));
  layer->eval();
  const at::Tensor x = torch::randn({9, 2, 8});
  const auto [whole, last] = layer->forward(x);
  std::optional<nn::LSTMImpl::State> state;
  std::vector<at::Tensor> parts;
  for (int64_t t = 0; t < 9; ++t) {
    const auto [y, next] = layer->forward(x.narrow(0, t, 1), state);
    parts.push_back(y), state = next;
  }
  EXPECT_LT(relative_error(torch::cat(parts), whole), 1e-5);
  EXPECT_LT(relative_error(std::get<1>(*state), std::get<1>(last)), 1e-5);
  const auto [one, of_one] = layer->forward(x.select(1, 0));
  EXPECT_EQ(one.sizes(), (std::vector<int64_t>{9, 8}));
  EXPECT_EQ(std::get<0>(of_one).sizes(), (std::vector<int64_t>{2, 8}));
}

// One frame at a time: after the third, tensors take no memory of the system.
TEST(LSTM, StreamsWithoutNewMemory) {
  for (const std::string algebra : {"real", "quaternion"}) {
    LSTM layer(LSTMOptions(16, 32).algebra(algebra).num_layers(2));
    layer->eval();
    const torch::NoGradGuard no_grad;
    const ops::StepMemory memory;
    const ops::StepMemory::Guard guard(memory);
    std::optional<nn::LSTMImpl::State> state;
    int64_t blocks = 0;
    for (int64_t frame = 0; frame < 20; ++frame) {
      state = std::get<1>(layer->forward(torch::randn({1, 1, 16}), state));
      if (frame == 2) blocks = memory.blocks();
    }
    EXPECT_GT(blocks, 0);
    EXPECT_EQ(memory.blocks(), blocks) << algebra;
  }
}

/// Keeps what is warned of.
class Warnings : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override { all.push_back(warning.msg()); }
  std::vector<std::string> all;
};

TEST(LSTM, WarnsOfDropoutThatDoesNothing) {
  Warnings warnings;
  const c10::WarningUtils::WarningHandlerGuard guard(&warnings);
  LSTM(LSTMOptions(8, 8).dropout(0.1).num_layers(2));
  LSTM(LSTMOptions(8, 8));
  EXPECT_TRUE(warnings.all.empty());
  LSTM(LSTMOptions(8, 8).dropout(0.1));
  ASSERT_EQ(warnings.all.size(), 1u);
  EXPECT_EQ(warnings.all[0],
            "LSTM: dropout is between the layers, so dropout = 0.1 does nothing with num_layers = 1");
}

TEST(LSTM, ClonesTrainsAndDropsStates) {
  torch::manual_seed(8);
  for (const int64_t projection : {0, 4}) {
    LSTM layer(
        LSTMOptions(8, 8).algebra("phm(2)").recurrent_dropout(0.5).dropout(0.1).num_layers(2).proj_size(
            projection));
    const auto copy = std::dynamic_pointer_cast<nn::LSTMImpl>(layer->clone());
    const at::Tensor x = torch::randn({5, 2, 8});
    layer->eval(), copy->eval();
    EXPECT_TRUE(std::get<0>(copy->forward(x)).equal(std::get<0>(layer->forward(x))));
    layer->train();
    EXPECT_FALSE(std::get<0>(layer->forward(x)).equal(std::get<0>(layer->forward(x))));
    std::get<0>(layer->forward(x)).sum().backward();
    for (const auto& parameter : layer->named_parameters())
      EXPECT_GT(parameter.value().grad().abs().sum().item<float>(), 0) << parameter.key();
  }
}

TEST(RecurrentCells, RealOnesAreTorchs) {
  torch::manual_seed(9);
  const at::Tensor x = torch::randn({3, 10}), h = torch::randn({3, 8}), c = torch::randn({3, 8});
  nn::LSTMCell lstm(nn::LSTMCellOptions(10, 8).algebra("real"));
  torch::nn::LSTMCell theirs(10, 8);
  take(lstm, theirs);
  const auto [h1, c1] = lstm->forward(x, std::tuple(h, c));
  const auto [wanted_h, wanted_c] = theirs->forward(x, std::tuple(h, c));
  EXPECT_LT(relative_error(h1, wanted_h), 1e-5);
  EXPECT_LT(relative_error(c1, wanted_c), 1e-5);
  EXPECT_LT(relative_error(std::get<0>(lstm->forward(x)), std::get<0>(theirs->forward(x))), 1e-5);
  EXPECT_LT(relative_error(std::get<1>(lstm->forward(x[1], std::tuple(h[1], c[1]))), wanted_c[1]), 1e-5);
  nn::GRUCell gru(nn::GRUCellOptions(10, 8).algebra("real"));
  torch::nn::GRUCell their_gru(10, 8);
  take(gru, their_gru);
  EXPECT_LT(relative_error(gru->forward(x, h), their_gru->forward(x, h)), 1e-5);
  nn::RNNCell rnn(nn::RNNCellOptions(10, 8).algebra("real"));
  torch::nn::RNNCell their_rnn(10, 8);
  take(rnn, their_rnn);
  EXPECT_LT(relative_error(rnn->forward(x, h), their_rnn->forward(x, h)), 1e-5);
  EXPECT_THROW(rnn->forward(torch::randn({3, 9})), c10::Error);
  EXPECT_THROW(rnn->forward(x, torch::randn({2, 8})), c10::Error);
  EXPECT_EQ(std::get<0>(lstm->forward(torch::randn({0, 10}))).size(0), 0);
}

TEST(LSTM, EmptySequencesAndBatches) {
  LSTM layer(LSTMOptions(8, 8));
  const auto [none, state] = layer->forward(torch::randn({0, 2, 8}));
  EXPECT_EQ(none.sizes(), (std::vector<int64_t>{0, 2, 8}));
  const at::Tensor y = std::get<0>(layer->forward(torch::randn({3, 0, 8})));
  EXPECT_EQ(y.sizes(), (std::vector<int64_t>{3, 0, 8}));
  y.sum().backward();
  for (const at::Tensor& parameter : layer->parameters()) {
    ASSERT_TRUE(parameter.grad().defined());
    EXPECT_EQ(parameter.grad().abs().sum().item<float>(), 0);
  }
}

TEST(LSTM, RefusesBadOptionsAndInput) {
  EXPECT_THROW(LSTM(LSTMOptions(9, 8)), std::invalid_argument);
  EXPECT_THROW(LSTM(LSTMOptions(8, 10)), std::invalid_argument);
  EXPECT_THROW(LSTM(LSTMOptions(8, 8).num_layers(0)), std::invalid_argument);
  EXPECT_THROW(LSTM(LSTMOptions(8, 8).dropout(1.5)), std::invalid_argument);
  EXPECT_THROW(LSTM(LSTMOptions(8, 8).share_directions(true)), std::invalid_argument);
  EXPECT_THROW(LSTM(LSTMOptions(8, 8).direction_first(true)), std::invalid_argument);
  for (const int64_t projection : {8, 12, -4, 2})
    EXPECT_THROW(LSTM(LSTMOptions(8, 8).proj_size(projection)), std::invalid_argument);
  EXPECT_THROW(LSTM(LSTMOptions(8, 8).chrono(2)), std::invalid_argument);
  EXPECT_THROW(LSTM(LSTMOptions(8, 8).chrono(50).bias(false)), std::invalid_argument);
  EXPECT_THROW(LSTM(LSTMOptions(8, 8).chrono(50).forget_bias(1)), std::invalid_argument);
  EXPECT_THROW(LSTM(LSTMOptions(8, 8).forget_bias(1).bias(false)), std::invalid_argument);
  EXPECT_THROW(RNN(RNNOptions(8, 8).chrono(50)), std::invalid_argument);
  EXPECT_THROW(nn::GRUCell(nn::GRUCellOptions(8, 8).chrono(-1)), std::invalid_argument);
  LSTM layer(LSTMOptions(8, 8));
  EXPECT_THROW(layer->forward(torch::randn({3, 2, 12})), c10::Error);
  EXPECT_THROW(layer->forward(torch::randn({3, 2, 8}), std::tuple(torch::zeros({1, 3, 8}), at::Tensor())),
               c10::Error);
}

}  // namespace
}  // namespace quatrain
