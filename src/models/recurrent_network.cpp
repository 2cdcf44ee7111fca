#include "quatrain/models/recurrent_network.h"

#include <torch/nn/modules/linear.h>
#include <torch/nn/utils/rnn.h>
#include <torch/types.h>

#include "ops/memory/step_memory.h"
#include "quatrain/nn/dropout.h"

namespace quatrain::models {

namespace {

// The layers' own options, with all that the two have in common.
template <class Layer>
Layer layer_options(const RecurrentNetworkOptions& options) {
  Layer layer(options.input_size(), options.hidden_size());
  layer.like(options);
  if (options.num_layers() == 1) layer.dropout(0);  // it acts before `dense` alone
  layer.recurrent_settings = options.recurrent_settings;
  layer.sizes = options.sizes;
  // As a real twin has it, whose weights can be taken; but a layer of the algebra reads whole numbers.
  layer.sizes.direction_first = options.bidirectional() && options.dense() == 0;
  return layer;
}

nn::Nonlinearity nonlinearity_of(ops::Cell cell) {
  if (cell == ops::Cell::rnn_relu) return torch::kReLU;
  return torch::kTanh;
}

}  // namespace

RecurrentNetworkImpl::RecurrentNetworkImpl(RecurrentNetworkOptions options) : options(std::move(options)) {
  RecurrentNetworkImpl::reset();
}

void RecurrentNetworkImpl::reset() {
  lstm = nullptr, gru = nullptr, rnn = nullptr, dense = nullptr;
  // Twins with other cells share the options: those that a cell has no use for are left out.
  if (ops::has_memory(options.cell()))
    lstm =
        register_module("layers", nn::LSTM(layer_options<nn::LSTMOptions>(options)
                                               .forget_bias(options.chrono() > 0 ? 0 : options.forget_bias())
                                               .printed(options.cell() == ops::Cell::lstm_printed)));
  else if (options.cell() == ops::Cell::gru)
    gru = register_module("layers", nn::GRU(layer_options<nn::GRUOptions>(options)));
  else
    rnn = register_module(
        "layers",
        nn::RNN(
            layer_options<nn::RNNOptions>(options).nonlinearity(nonlinearity_of(options.cell())).chrono(0)));
  const int64_t width = options.hidden_size() * (options.bidirectional() ? 2 : 1);
  if (options.dense() > 0)
    dense = register_module("dense", nn::Linear(nn::LinearOptions(width, options.dense()).like(options)));
  output = register_module("output", torch::nn::Linear(dense ? options.dense() : width, options.classes()));
}

void RecurrentNetworkImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::models::RecurrentNetwork(" << ops::name(options.cell()) << ", ";
  if (dense) stream << "dense " << options.dense() << ", ";
  stream << options.classes() << " classes)";
}

at::Tensor RecurrentNetworkImpl::scores(const at::Tensor& y) {
  if (!dense) return output->forward(y);
  const at::Tensor kept = nn::dropout(y, options.dropout(), is_training(), options.algebra().n);
  return output->forward(dense->forward(kept).tanh());
}

at::Tensor RecurrentNetworkImpl::forward(const at::Tensor& x) {
  if (lstm) return scores(std::get<0>(lstm->forward(x)));
  return scores(std::get<0>(gru ? gru->forward(x) : rnn->forward(x)));
}

at::Tensor RecurrentNetworkImpl::forward(const torch::nn::utils::rnn::PackedSequence& x) {
  if (lstm) return scores(std::get<0>(lstm->forward_with_packed_input(x)).data());
  return scores(
      std::get<0>(gru ? gru->forward_with_packed_input(x) : rnn->forward_with_packed_input(x)).data());
}

at::Tensor RecurrentNetworkImpl::advance(const at::Tensor& x, State& state) {
  TORCH_CHECK(!options.bidirectional(),
              "RecurrentNetwork: a bidirectional network needs the whole sequence, advance() has a piece");
  TORCH_CHECK_VALUE(x.dim() == 2, "RecurrentNetwork: x must have the shape (steps, input_size), got ",
                    x.sizes());
  if (!state.memory) state.memory = std::make_shared<ops::StepMemory>();
  const ops::StepMemory::Guard memory(*state.memory);
  const at::Tensor one = options.batch_first() ? x.unsqueeze(0) : x.unsqueeze(1);
  at::Tensor y;
  if (lstm) {
    std::optional<nn::LSTMImpl::State> before;
    if (state.h.defined()) before = {state.h, state.c};
    const auto [all, last] = lstm->forward(one, before);
    y = all;
    std::tie(state.h, state.c) = last;
  } else {
    std::tie(y, state.h) = gru ? gru->forward(one, state.h) : rnn->forward(one, state.h);
  }
  return scores(y.reshape({x.size(0), options.hidden_size()}));
}

}  // namespace quatrain::models
