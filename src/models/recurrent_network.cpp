#include "quatrain/models/recurrent_network.h"

#include <torch/torch.h>

namespace quatrain::models {

namespace {

// The layers' own options, with all that the two have in common.
template <class Layer>
Layer layer_options(const RecurrentNetworkOptions& options) {
  Layer layer(options.input_size(), options.hidden_size());
  layer.like(options);
  layer.recurrent_settings = options.recurrent_settings;
  layer.sizes = options.sizes;
  return layer;
}

}  // namespace

RecurrentNetworkImpl::RecurrentNetworkImpl(RecurrentNetworkOptions options) : options(std::move(options)) {
  RecurrentNetworkImpl::reset();
}

void RecurrentNetworkImpl::reset() {
  lstm = nullptr, gru = nullptr, rnn = nullptr;
  if (ops::has_memory(options.cell()))
    lstm = register_module("layers", nn::LSTM(layer_options<nn::LSTMOptions>(options)
                                                  .forget_bias(options.forget_bias())
                                                  .printed(options.cell() == ops::Cell::lstm_printed)));
  else if (options.cell() == ops::Cell::gru)
    gru = register_module("layers", nn::GRU(layer_options<nn::GRUOptions>(options)));
  else
    rnn = register_module("layers", nn::RNN(layer_options<nn::RNNOptions>(options).cell(options.cell())));
  const int64_t width = options.hidden_size() * (options.bidirectional() ? 2 : 1);
  output = register_module("output", torch::nn::Linear(width, options.classes()));
}

void RecurrentNetworkImpl::pretty_print(std::ostream& stream) const {
  stream << "quatrain::models::RecurrentNetwork(" << ops::name(options.cell()) << ", " << options.classes()
         << " classes)";
}

at::Tensor RecurrentNetworkImpl::forward(const at::Tensor& x) {
  if (lstm) return output->forward(std::get<0>(lstm->forward(x)));
  return output->forward(std::get<0>(gru ? gru->forward(x) : rnn->forward(x)));
}

}  // namespace quatrain::models
