#include "quatrain/nn/recurrent_cell.h"

#include <torch/types.h>

#include "nn/check.h"

namespace quatrain::nn {

namespace {

template <class Options>
RecurrentWeights::Options weights_of(const char* name, ops::Cell cell, const Options& options,
                                     double forget_bias = 0) {
  RecurrentWeights::Options weights{.cell = cell,
                                    .input = options.input_size(),
                                    .hidden = options.hidden_size(),
                                    .map = options.map_settings,
                                    .recurrent = options.recurrent_settings,
                                    .forget_bias = forget_bias,
                                    .suffix = {}};
  weights.check(name);
  return weights;
}

template <class Options>
void print_cell(std::ostream& stream, const char* name, const Options& options) {
  stream << "quatrain::nn::" << name << "(" << options.input_size() << ", " << options.hidden_size()
         << ", algebra=" << options.algebra().text() << ", bias=" << (options.bias() ? "true" : "false")
         << ")";
}

template <class Options>
std::tuple<at::Tensor, at::Tensor> step(const char* name, const RecurrentWeights& weights,
                                        const Options& options, const at::Tensor& x, const at::Tensor& h,
                                        const at::Tensor& c, bool memory, bool training) {
  TORCH_CHECK_VALUE((x.dim() == 1 || x.dim() == 2) && x.size(-1) == options.input_size(), name,
                    ": x must have the shape (batch, ", options.input_size(), ") or (", options.input_size(),
                    "), got ", x.sizes());
  const at::Tensor rows = x.dim() == 1 ? x.unsqueeze(0) : x;
  const auto start = [&](const char* what, const at::Tensor& state) {
    if (!state.defined()) return torch::zeros({rows.size(0), options.hidden_size()}, x.options());
    auto wanted = x.sizes().vec();
    wanted.back() = options.hidden_size();
    TORCH_CHECK_VALUE(state.sizes() == wanted, name, ": ", what, " must have the shape ",
                      at::IntArrayRef(wanted), ", got ", state.sizes());
    return x.dim() == 1 ? state.unsqueeze(0) : state;
  };
  const at::Tensor h0 = start("h", h), c0 = memory ? start("c", c) : at::Tensor();
  const int64_t batch = rows.size(0);
  const at::Tensor one =
      torch::full({batch > 0 ? 1 : 0}, batch, torch::kLong);  // a step without a row is none
  const auto [y, h1, c1] = weights.forward(rows, one, h0, c0, false, training);
  if (x.dim() == 2) return {h1, c1};
  return {h1.squeeze(0), memory ? c1.squeeze(0) : c1};
}

}  // namespace

LSTMCellImpl::LSTMCellImpl(LSTMCellOptions options) : options(std::move(options)) {
  LSTMCellImpl::reset();
}

void LSTMCellImpl::reset() {
  weights_.make(*this, weights_of("LSTMCell", options.printed() ? ops::Cell::lstm_printed : ops::Cell::lstm,
                                  options, options.forget_bias()));
}

void LSTMCellImpl::pretty_print(std::ostream& stream) const {
  print_cell(stream, "LSTMCell", options);
}

std::tuple<at::Tensor, at::Tensor> LSTMCellImpl::forward(
    const at::Tensor& x, std::optional<std::tuple<at::Tensor, at::Tensor>> state) {
  const auto [h, c] = state.value_or(std::tuple<at::Tensor, at::Tensor>());
  return step("LSTMCell", weights_, options, x, h, c, true, is_training());
}

GRUCellImpl::GRUCellImpl(GRUCellOptions options) : options(std::move(options)) {
  GRUCellImpl::reset();
}

void GRUCellImpl::reset() {
  weights_.make(*this, weights_of("GRUCell", ops::Cell::gru, options));
}

void GRUCellImpl::pretty_print(std::ostream& stream) const {
  print_cell(stream, "GRUCell", options);
}

at::Tensor GRUCellImpl::forward(const at::Tensor& x, const at::Tensor& h) {
  return std::get<0>(step("GRUCell", weights_, options, x, h, {}, false, is_training()));
}

RNNCellImpl::RNNCellImpl(RNNCellOptions options) : options(std::move(options)) {
  RNNCellImpl::reset();
}

void RNNCellImpl::reset() {
  weights_.make(*this, weights_of("RNNCell", cell_of(options.nonlinearity()), options));
}

void RNNCellImpl::pretty_print(std::ostream& stream) const {
  print_cell(stream, "RNNCell", options);
}

at::Tensor RNNCellImpl::forward(const at::Tensor& x, const at::Tensor& h) {
  return std::get<0>(step("RNNCell", weights_, options, x, h, {}, false, is_training()));
}

}  // namespace quatrain::nn
