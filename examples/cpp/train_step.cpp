// Defines a model of hypercomplex layers, trains it for one step, saves its weights and loads them into a
// second one.

#include <torch/torch.h>

#include <iostream>

#include "quatrain/quatrain.h"

namespace nn = quatrain::nn;

/// Two hypercomplex layers and a real head: a fixed algebra and a learned one behave alike.
struct NetImpl : torch::nn::Module {
  NetImpl() {
    quaternion = register_module("quaternion", nn::Linear(nn::LinearOptions(64, 128).algebra("quaternion")));
    learned = register_module("learned", nn::Linear(nn::LinearOptions(128, 64).algebra("phm(4)")));
    head = register_module("head", torch::nn::Linear(64, 2));
  }

  at::Tensor forward(const at::Tensor& x) { return head(torch::relu(learned(torch::relu(quaternion(x))))); }

  nn::Linear quaternion{nullptr}, learned{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Net);

int64_t parameters(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const auto& parameter : module.parameters()) count += parameter.numel();
  return count;
}

int main() {
  torch::manual_seed(0);
  Net net;
  std::cout << "a quaternion layer 64 -> 128 holds " << parameters(*net->quaternion)
            << " parameters, the real one " << 64 * 128 + 128 << "\n";

  const auto x = torch::randn({32, 64});
  const auto labels = torch::randint(2, {32});
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(1e-3));
  const auto loss = torch::nn::functional::cross_entropy(net(x), labels);
  loss.backward();
  optimizer.step();
  const auto after = torch::nn::functional::cross_entropy(net(x), labels);
  std::cout << "loss " << loss.item<float>() << ", after one step " << after.item<float>() << "\n";

  nn::save_weights(*net, "net.safetensors");
  Net again;
  nn::load_weights(*again, "net.safetensors");
  const bool equal = torch::equal(net(x), again(x));
  std::cout << "saved and loaded: the outputs are " << (equal ? "equal" : "different") << "\n";
  return equal && after.item<float>() < loss.item<float>() ? 0 : 1;
}
