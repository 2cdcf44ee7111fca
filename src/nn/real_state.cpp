#include "nn/real_state.h"

#include <torch/enum.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/rnn.h>
#include <torch/types.h>

#include <optional>

#include "nn/check.h"
#include "nn/torch_layers.h"
#include "quatrain/nn/recurrent.h"
#include "quatrain/nn/recurrent_cell.h"

namespace quatrain::nn {
namespace {

// Puts rows or columns that were taken in an order back where they were.
at::Tensor put_back(const at::Tensor& t, int64_t axis, const at::Tensor& order) {
  return order.defined() ? t.index_select(axis, order.argsort().to(t.device())) : t;
}

// What a recurrent layer computes beside its maps.
struct Recurrence {
  std::string cell;
  bool bidirectional = false;
  int64_t cuts = 1;  // of its outputs, into components, around the two directions
  int64_t projection = 0;
};

template <class Layer>
std::optional<Recurrence> ours(const torch::nn::Module& module, const auto& cell) {
  const auto* layer = dynamic_cast<const Layer*>(&module);
  if (!layer) return {};
  Recurrence result{.cell = ops::name(cell(layer->options))};
  if constexpr (requires { layer->options.bidirectional(); }) {
    result.bidirectional = layer->options.bidirectional();
    if (result.bidirectional && !layer->options.direction_first()) result.cuts = layer->options.algebra().n;
  }
  if constexpr (requires { layer->options.proj_size(); }) result.projection = layer->options.proj_size();
  return result;
}

template <class Layer>
std::optional<Recurrence> torchs(const torch::nn::Module& module, const char* cell) {
  const auto* layer = dynamic_cast<const Layer*>(&module);
  if (!layer) return {};
  Recurrence result{.cell = cell};
  if constexpr (requires { layer->options_base.mode(); }) {
    const auto& o = layer->options_base;
    if (std::holds_alternative<torch::enumtype::kRNN_RELU>(o.mode())) result.cell = "rnn_relu";
    result.bidirectional = o.bidirectional(), result.projection = o.proj_size();
  } else if constexpr (requires { layer->options.nonlinearity(); }) {
    result.cell = ops::name(cell_of(layer->options.nonlinearity()));
  }
  return result;
}

std::optional<Recurrence> recurrence_of(const torch::nn::Module& module) {
  const auto lstm = [](const auto& o) { return o.printed() ? ops::Cell::lstm_printed : ops::Cell::lstm; };
  const auto gru = [](const auto&) { return ops::Cell::gru; };
  const auto rnn = [](const auto& o) { return cell_of(o.nonlinearity()); };
  namespace tnn = torch::nn;
  for (const auto& found :
       {ours<LSTMImpl>(module, lstm), ours<LSTMCellImpl>(module, lstm), ours<GRUImpl>(module, gru),
        ours<GRUCellImpl>(module, gru), ours<RNNImpl>(module, rnn), ours<RNNCellImpl>(module, rnn),
        torchs<tnn::LSTMImpl>(module, "lstm"), torchs<tnn::LSTMCellImpl>(module, "lstm"),
        torchs<tnn::GRUImpl>(module, "gru"), torchs<tnn::GRUCellImpl>(module, "gru"),
        torchs<tnn::RNNImpl>(module, "rnn_tanh"), torchs<tnn::RNNCellImpl>(module, "rnn_tanh")})
    if (found) return found;
  return {};
}

}  // namespace

bool is_recurrent(const torch::nn::Module& module) {
  return recurrence_of(module).has_value();
}

int64_t part_count(const HypercomplexWeight& weight) {
  int64_t sum = 0;
  for (const auto& part : weight.parts()) sum += part.value.numel();
  return sum;
}

RealState::RealState(const torch::nn::Module& module) {
  const auto* layer = dynamic_cast<const HypercomplexLayer*>(&module);
  struct Piece {
    HypercomplexLayer::Place place;
    at::Tensor value;
    int64_t count;
  };
  std::map<std::string, std::vector<Piece>> pieces;
  const auto add = [&](const std::string& name, const at::Tensor& value, int64_t count) {
    Piece piece{layer ? layer->place_in_real(name) : HypercomplexLayer::Place{name, {}, {}}, value, count};
    pieces[piece.place.name].push_back(std::move(piece));
  };
  auto rest = module.named_parameters(false);
  if (layer)
    for (const HypercomplexWeight* weight : layer->weights()) {
      add(weight->key(), weight->matrix(), part_count(*weight));
      for (const auto& part : weight->parts()) rest.erase(part.name);
    }
  const auto torchs = torch_layer(module);
  const bool convolution = torchs && torchs->convolution;
  require(!convolution || torchs->groups == 1, "fill_nearest: ", module.name(), " must have one group, got ",
          convolution ? torchs->groups : 0,
          "; those of torch are runs of channels, ours are parts of every component");
  for (const auto& item : rest) {
    const bool is_kernel = convolution && item.key() == "weight";
    add(is_kernel ? "F" : item.key(), is_kernel ? torchs->H : item.value(), item.value().numel());
  }
  for (const auto& [name, parts] : pieces) {
    std::vector<at::Tensor> values, rows;
    Found& found = found_[name];
    for (const Piece& piece : parts) {
      values.push_back(put_back(piece.value, 1, piece.place.columns));
      if (piece.place.rows.defined()) rows.push_back(piece.place.rows);
      found.count += piece.count;
    }
    found.value = values.size() == 1 ? values[0] : torch::cat(values);
    if (!rows.empty()) found.value = put_back(found.value, 0, torch::cat(rows));
  }
}

std::vector<std::string> RealState::names() const {
  std::vector<std::string> result;
  for (const auto& [name, found] : found_) result.push_back(name);
  return result;
}

at::Tensor RealState::part(const HypercomplexLayer::Place& place, const std::string& what) const {
  at::Tensor value = found_.at(place.name).value;
  for (const auto& [axis, order] : {std::pair<int64_t, at::Tensor>(0, place.rows), {1, place.columns}}) {
    if (!order.defined()) continue;
    require(value.dim() > axis && order.max().item<int64_t>() < value.size(axis), what,
            " must have one size in both models, got ", value.sizes(), " in the real one");
    value = value.index_select(axis, order.to(value.device()));
  }
  return value;
}

void require_same_recurrence(const torch::nn::Module& real, const torch::nn::Module& twin,
                             const std::string& name) {
  const auto from = recurrence_of(real), to = recurrence_of(twin);
  if (!from && !to) return;
  require(from && to && from->cell == to->cell, "fill_nearest: ", name,
          " must be one kind of recurrent layer in both models, got ", real.name(),
          from ? " (" + from->cell + ")" : "", " and ", twin.name(), to ? " (" + to->cell + ")" : "");
  require(from->projection == to->projection, "fill_nearest: ", name,
          " must have one proj_size in both models, got ", from->projection, " and ", to->projection);
  require(from->bidirectional == to->bidirectional, "fill_nearest: ", name,
          " must have one number of directions in both models");
  require(from->cuts == to->cuts, "fill_nearest: ", name,
          " joins the outputs of its two directions inside each component, as the real layer does not, so "
          "that what "
          "reads them would find others: build the twin with direction_first(true)");
}

}  // namespace quatrain::nn
