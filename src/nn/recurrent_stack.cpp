#include <torch/nn/module.h>
#include <torch/nn/utils/rnn.h>
#include <torch/types.h>

#include "nn/check.h"
#include "quatrain/nn/dropout.h"
#include "quatrain/nn/recurrent.h"

namespace quatrain::nn {

using torch::nn::utils::rnn::PackedSequence;

void RecurrentStack::make(torch::nn::Module& layer, const char* name, RecurrentWeights::Options first,
                          const RecurrentSizes& sizes, double dropout) {
  name_ = name;
  cell_ = first.cell, n_ = first.map.algebra.n, input_ = first.input, hidden_ = first.hidden;
  first.check(name);
  if (first.projection != 0) {
    require(first.projection > 0 && first.projection < hidden_, name,
            ": proj_size must be smaller than hidden_size = ", hidden_, ", or 0 for none, got ",
            first.projection);
    require_divisible(name, "proj_size", first.projection, n_, "n");
  }
  state_ = first.projection > 0 ? first.projection : hidden_;
  require(sizes.layers >= 1, name, ": num_layers must be at least 1, got ", sizes.layers);
  require_probability(name, "dropout", dropout);
  if (dropout > 0 && sizes.layers == 1)
    TORCH_WARN(name, ": dropout is between the layers, so dropout = ", dropout,
               " does nothing with num_layers = 1");
  for (const auto& [asked, option] :
       {std::pair(sizes.share_directions, "share_directions"), {sizes.direction_first, "direction_first"}})
    require(sizes.bidirectional || !asked, name, ": ", option, " needs two directions; set bidirectional");
  directions_ = sizes.bidirectional ? 2 : 1;
  weights_of_layer_ = sizes.bidirectional && !sizes.share_directions ? 2 : 1;
  batch_first_ = sizes.batch_first, direction_first_ = sizes.direction_first, dropout_ = dropout;
  layers_.assign(static_cast<size_t>(sizes.layers) * weights_of_layer_, {});
  for (size_t i = 0; i < layers_.size(); ++i) {
    const size_t number = i / weights_of_layer_;
    RecurrentWeights::Options options = first;
    if (number > 0) options.input = directions_ * state_, options.directions = directions_;
    options.suffix = "_l" + std::to_string(number) + (i % weights_of_layer_ ? "_reverse" : "");
    layers_[i].make(layer, std::move(options));
  }
}

void RecurrentStack::draw() {
  for (RecurrentWeights& layer : layers_) layer.draw();
}

std::vector<HypercomplexWeight*> RecurrentStack::weights() {
  std::vector<HypercomplexWeight*> all;
  for (RecurrentWeights& layer : layers_)
    for (HypercomplexWeight* weight : layer.weights()) all.push_back(weight);
  return all;
}

HypercomplexLayer::Place RecurrentStack::place_in_real(const std::string& parameter) const {
  for (const RecurrentWeights& layer : layers_)
    if (auto place = layer.place_in_real(parameter)) return *place;
  return {parameter, {}, {}};
}

RecurrentStack::States RecurrentStack::start(const States& given, int64_t batch, const at::Tensor& x) const {
  const int64_t count = static_cast<int64_t>(layers_.size() / weights_of_layer_) * directions_;
  const auto start_of = [&](const char* what, const at::Tensor& state, int64_t size) {
    const std::vector<int64_t> sizes{count, batch, size};
    if (!state.defined()) return torch::zeros(sizes, x.options());
    TORCH_CHECK_VALUE(state.sizes() == sizes, name_, ": ", what,
                      " must have the shape (layers * directions, batch, ",
                      size == hidden_ ? "hidden_size" : "proj_size", ") = ", at::IntArrayRef(sizes), ", got ",
                      state.sizes());
    return state;
  };
  States result;
  result.h = start_of("h0", given.h, state_);
  if (ops::has_memory(cell_)) result.c = start_of("c0", given.c, hidden_);
  return result;
}

std::pair<at::Tensor, RecurrentStack::States> RecurrentStack::rows_forward(const at::Tensor& rows,
                                                                           const at::Tensor& batch_sizes,
                                                                           const States& states,
                                                                           bool training) const {
  const size_t layers = layers_.size() / weights_of_layer_;
  std::vector<at::Tensor> last_h, last_c;
  at::Tensor x = rows;
  for (size_t l = 0; l < layers; ++l) {
    std::vector<at::Tensor> ys;
    for (int64_t d = 0; d < directions_; ++d) {
      const auto place = static_cast<int64_t>(last_h.size());
      const RecurrentWeights& weights = layers_[l * weights_of_layer_ + (weights_of_layer_ > 1 ? d : 0)];
      const auto [y, h, c] =
          weights.forward(x, batch_sizes, states.h[place],
                          states.c.defined() ? states.c[place] : at::Tensor(), d == 1, training);
      ys.push_back(y.view({y.size(0), n_, state_ / n_}));
      last_h.push_back(h);
      if (c.defined()) last_c.push_back(c);
    }
    const int64_t axis = direction_first_ && l + 1 == layers ? 1 : 2;
    x = (directions_ == 1 ? ys[0] : torch::cat(ys, axis)).reshape({rows.size(0), directions_ * state_});
    if (l + 1 < layers) x = dropout(x, dropout_, training, n_);
  }
  return {x, {torch::stack(last_h), last_c.empty() ? at::Tensor() : torch::stack(last_c)}};
}

std::pair<at::Tensor, RecurrentStack::States> RecurrentStack::forward(const at::Tensor& x,
                                                                      const States& states,
                                                                      bool training) const {
  TORCH_CHECK_VALUE((x.dim() == 2 || x.dim() == 3) && x.size(-1) == input_, name_, ": x must have the shape ",
                    batch_first_ ? "(batch, steps, " : "(steps, batch, ", input_, ") or (steps, ", input_,
                    "), got ", x.sizes());
  if (x.dim() == 2) {
    const auto as_batch = [&](const at::Tensor& state) {
      TORCH_CHECK_VALUE(!state.defined() || state.dim() == 2, name_,
                        ": the states of a sequence without a batch must have the shape (layers * "
                        "directions, hidden_size), got ",
                        state.sizes());
      return state.defined() ? state.unsqueeze(1) : state;
    };
    const auto [y, last] =
        forward(x.unsqueeze(batch_first_ ? 0 : 1), States{as_batch(states.h), as_batch(states.c)}, training);
    return {y.squeeze(batch_first_ ? 0 : 1),
            {last.h.squeeze(1), last.c.defined() ? last.c.squeeze(1) : last.c}};
  }
  const at::Tensor by_step = batch_first_ ? x.transpose(0, 1) : x;
  const int64_t steps = by_step.size(0), batch = by_step.size(1);
  const States first = start(states, batch, x);
  // Steps without a row are no steps; what autograd records is the same.
  const at::Tensor sizes = torch::full({batch > 0 ? steps : 0}, batch, torch::kLong);
  const auto [rows, last] = rows_forward(by_step.reshape({-1, input_}), sizes, first, training);
  const at::Tensor y = rows.view({steps, batch, directions_ * state_});
  return {batch_first_ ? y.transpose(0, 1) : y, last};
}

std::pair<PackedSequence, RecurrentStack::States> RecurrentStack::forward(const PackedSequence& x,
                                                                          const States& states,
                                                                          bool training) const {
  const at::Tensor sizes = x.batch_sizes();
  TORCH_CHECK_VALUE(sizes.numel() > 0 && x.data().dim() == 2 && x.data().size(1) == input_, name_,
                    ": the packed data must have the shape (rows, ", input_, "), got ", x.data().sizes());
  const States first = start(states, sizes[0].item<int64_t>(), x.data());
  const auto permuted = [](const at::Tensor& state, const at::Tensor& order) {
    return state.defined() && order.defined() ? state.index_select(1, order) : state;
  };
  const auto [y, last] =
      rows_forward(x.data(), sizes,
                   {permuted(first.h, x.sorted_indices()), permuted(first.c, x.sorted_indices())}, training);
  return {PackedSequence(y, sizes, x.sorted_indices(), x.unsorted_indices()),
          {permuted(last.h, x.unsorted_indices()), permuted(last.c, x.unsorted_indices())}};
}

}  // namespace quatrain::nn
