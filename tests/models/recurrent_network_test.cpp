#include "quatrain/models/recurrent_network.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "ops/reference.h"
#include "quatrain/nn/parameters.h"
#include "system_memory.h"

namespace quatrain {
namespace {

using models::RecurrentNetwork;
using models::RecurrentNetworkOptions;

TEST(RecurrentNetwork, StepsAfterTheThirdTakeNoMemory) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  for (const std::string algebra : {"real", "quaternion", "phm(4)"})
    for (const ops::Cell cell : {ops::Cell::lstm, ops::Cell::gru, ops::Cell::rnn_relu}) {
      RecurrentNetwork network(RecurrentNetworkOptions(16, 128, 10)
                                   .cell(cell)
                                   .algebra(algebra)
                                   .num_layers(2)
                                   .dense(cell == ops::Cell::gru ? 0 : 64));
      network->eval();
      const at::Tensor x = torch::randn({40, 16}), whole = network->forward(x.unsqueeze(1)).squeeze(1);
      models::RecurrentNetworkImpl::State state;
      const test::SystemMemory system;
      for (int64_t frame = 0; frame < x.size(0); ++frame) {
        const int64_t before = system.blocks();
        const at::Tensor y = network->advance(x.narrow(0, frame, 1), state);
        const int64_t taken = system.blocks() - before;
        EXPECT_TRUE(frame > 2 ? taken == 0 : frame > 0 || taken > 0)
            << taken << " in frame " << frame << ", " << algebra << ", " << ops::name(cell);
        EXPECT_LT(test::relative_error(y[0], whole[frame]), 1e-5);
      }
    }
}

// QRNN table 3: as its LSTMs of TIMIT, with a dense layer of 2,048 before the classes of the Wall Street
// Journal.
TEST(RecurrentNetwork, SizesOfTheWallStreetJournalAreThePapers) {
  const auto within = [](const std::string& algebra, double millions) {
    const RecurrentNetwork network(RecurrentNetworkOptions(160, 1024, 3390)
                                       .algebra(algebra)
                                       .num_layers(4)
                                       .bidirectional(true)
                                       .share_directions(true)
                                       .single_bias(true)
                                       .dense(2048));
    EXPECT_NEAR(static_cast<double>(nn::parameter_report(*network).total) / 1e6, millions,
                0.015 * millions + 0.05);
  };
  within("real", 53.7), within("quaternion", 18.7);
}

TEST(RecurrentNetwork, TheDenseLayerReadsBothDirectionsComponentByComponent) {
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  for (const std::string algebra : {"real", "quaternion", "phm(2)"})
    for (const ops::Cell cell : {ops::Cell::lstm, ops::Cell::gru}) {
      SCOPED_TRACE(algebra);
      RecurrentNetwork network(
          RecurrentNetworkOptions(8, 16, 5).cell(cell).algebra(algebra).bidirectional(true).dense(12));
      network->eval();
      const at::Tensor x = torch::randn({6, 2, 8});
      const int64_t n = network->options.algebra().n;
      const auto joined = [&]<class Layer>(Layer& layer) {  // by one that leaves its directions apart
        auto options = layer.options;
        Layer apart(options.direction_first(true));
        for (auto& parameter : apart.named_parameters())
          parameter.value().copy_(layer.named_parameters()[parameter.key()]);
        const at::Tensor y = std::get<0>(apart.forward(x));
        return y.view({6, 2, 2, n, 16 / n}).transpose(2, 3).reshape({6, 2, 32});
      };
      const at::Tensor y = cell == ops::Cell::lstm ? joined(*network->lstm) : joined(*network->gru);
      const at::Tensor hidden = y.matmul(network->dense->matrix().t()) + network->dense->bias;
      EXPECT_LT(test::relative_error(network->forward(x), network->output->forward(hidden.tanh())), 1e-5);
    }
}

TEST(RecurrentNetwork, ADenseLayerTrainsWithDropout) {
  torch::manual_seed(3);
  const torch::NoGradGuard no_grad;
  RecurrentNetwork network(RecurrentNetworkOptions(8, 16, 5).dropout(0.5).dense(12));
  const at::Tensor x = torch::randn({6, 2, 8});
  EXPECT_FALSE(network->forward(x).equal(network->forward(x)));
  network->eval();
  EXPECT_TRUE(network->forward(x).equal(network->forward(x)));
}

}  // namespace
}  // namespace quatrain
