#include "quatrain/nn/recurrent.h"

#include <torch/nn/utils/rnn.h>
#include <torch/types.h>

#include "nn/check.h"

namespace quatrain::nn {

using torch::nn::utils::rnn::PackedSequence;

namespace {

template <class Options>
void print(std::ostream& stream, const char* name, const Options& options) {
  stream << "quatrain::nn::" << name << "(" << options.input_size() << ", " << options.hidden_size()
         << ", algebra=" << options.algebra().text() << ", num_layers=" << options.num_layers()
         << ", bias=" << (options.bias() ? "true" : "false") << ", dropout=" << options.dropout()
         << ", bidirectional=" << (options.bidirectional() ? "true" : "false") << ")";
}

template <class Y>
std::tuple<Y, LSTMImpl::State> with_state(std::pair<Y, RecurrentStack::States> result) {
  return {std::move(result.first), {result.second.h, result.second.c}};
}

RecurrentStack::States states_of(const std::optional<LSTMImpl::State>& state) {
  return state ? RecurrentStack::States{std::get<0>(*state), std::get<1>(*state)} : RecurrentStack::States{};
}

}  // namespace

LSTMImpl::LSTMImpl(LSTMOptions options) : options(std::move(options)) {
  LSTMImpl::reset();
}

void LSTMImpl::reset() {
  stack_.make(*this, "LSTM", options.printed() ? ops::Cell::lstm_printed : ops::Cell::lstm, options,
              options.forget_bias(), options.proj_size());
}

void LSTMImpl::pretty_print(std::ostream& stream) const {
  print(stream, "LSTM", options);
}

std::tuple<at::Tensor, LSTMImpl::State> LSTMImpl::forward(const at::Tensor& x, std::optional<State> state) {
  return with_state(stack_.forward(x, states_of(state), is_training()));
}

std::tuple<PackedSequence, LSTMImpl::State> LSTMImpl::forward_with_packed_input(const PackedSequence& x,
                                                                                std::optional<State> state) {
  return with_state(stack_.forward(x, states_of(state), is_training()));
}

GRUImpl::GRUImpl(GRUOptions options) : options(std::move(options)) {
  GRUImpl::reset();
}

void GRUImpl::reset() {
  stack_.make(*this, "GRU", ops::Cell::gru, options);
}

void GRUImpl::pretty_print(std::ostream& stream) const {
  print(stream, "GRU", options);
}

std::tuple<at::Tensor, at::Tensor> GRUImpl::forward(const at::Tensor& x, const at::Tensor& h) {
  auto [y, last] = stack_.forward(x, {h, {}}, is_training());
  return {y, last.h};
}

std::tuple<PackedSequence, at::Tensor> GRUImpl::forward_with_packed_input(const PackedSequence& x,
                                                                          const at::Tensor& h) {
  auto [y, last] = stack_.forward(x, {h, {}}, is_training());
  return {y, last.h};
}

RNNImpl::RNNImpl(RNNOptions options) : options(std::move(options)) {
  RNNImpl::reset();
}

void RNNImpl::reset() {
  stack_.make(*this, "RNN", cell_of(options.nonlinearity()), options);
}

void RNNImpl::pretty_print(std::ostream& stream) const {
  print(stream, "RNN", options);
}

std::tuple<at::Tensor, at::Tensor> RNNImpl::forward(const at::Tensor& x, const at::Tensor& h) {
  auto [y, last] = stack_.forward(x, {h, {}}, is_training());
  return {y, last.h};
}

std::tuple<PackedSequence, at::Tensor> RNNImpl::forward_with_packed_input(const PackedSequence& x,
                                                                          const at::Tensor& h) {
  auto [y, last] = stack_.forward(x, {h, {}}, is_training());
  return {y, last.h};
}

}  // namespace quatrain::nn
