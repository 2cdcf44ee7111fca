#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <memory>

#include "quatrain/nn/linear.h"
#include "quatrain/nn/recurrent.h"

namespace quatrain::ops {
class StepMemory;
}

namespace quatrain::models {

struct QUATRAIN_API RecurrentNetworkOptions : nn::RecurrentLayerOptions<RecurrentNetworkOptions> {
  RecurrentNetworkOptions(int64_t input_size, int64_t hidden_size, int64_t classes)
      : RecurrentLayerOptions(input_size, hidden_size), classes_(classes) {}
  TORCH_ARG(int64_t, classes);
  TORCH_ARG(ops::Cell, cell) = ops::Cell::lstm;
  /// What bias_ih of an lstm's forget gates starts with, where `chrono` is 0.
  TORCH_ARG(double, forget_bias) = 0;
  /// Width of a layer of the same algebra between the recurrent ones and the scores; 0 for none. `dropout`
  /// acts before it too.
  TORCH_ARG(int64_t, dense) = 0;
};

/// Recurrent layers of any cell, and a real linear layer that scores classes at each step, as QRNN's acoustic
/// models are. With `dense` the scores are those of tanh(D * y): QRNN's table 3.
class QUATRAIN_API RecurrentNetworkImpl : public torch::nn::Cloneable<RecurrentNetworkImpl> {
 public:
  explicit RecurrentNetworkImpl(RecurrentNetworkOptions options);

  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  /// x: (steps, batch, input_size), or with batch_first (batch, steps, input_size). Returns the logits, of
  /// the same shape with `classes` at the end.
  at::Tensor forward(const at::Tensor& x);
  /// Sequences of different lengths: the logits of their rows, (rows, classes).
  at::Tensor forward(const torch::nn::utils::rnn::PackedSequence& x);

  /// What one sequence has left behind; undefined at its start. Its tensors lie in `memory`, which advance()
  /// makes.
  struct State {
    at::Tensor h, c;
    std::shared_ptr<ops::StepMemory> memory;
  };
  /// One sequence goes on: x (steps, input_size) gives (steps, classes), and the state becomes the new one.
  /// In pieces or as a whole the logits are the same. Pieces of one length take no memory for tensors from
  /// the system after the third. Throws where the layers are bidirectional.
  at::Tensor advance(const at::Tensor& x, State& state);

  RecurrentNetworkOptions options;
  nn::LSTM lstm{nullptr};  // one of the three
  nn::GRU gru{nullptr};
  nn::RNN rnn{nullptr};
  nn::Linear dense{nullptr};  // where the options ask for it
  torch::nn::Linear output{nullptr};

 private:
  at::Tensor scores(const at::Tensor& y);
};
TORCH_MODULE(RecurrentNetwork);

}  // namespace quatrain::models
