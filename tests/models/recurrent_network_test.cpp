#include "quatrain/models/recurrent_network.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "ops/reference.h"
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
      RecurrentNetwork network(
          RecurrentNetworkOptions(16, 128, 10).cell(cell).algebra(algebra).num_layers(2));
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

}  // namespace
}  // namespace quatrain
