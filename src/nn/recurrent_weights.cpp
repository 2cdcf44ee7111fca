#include "quatrain/nn/recurrent_weights.h"

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "nn/check.h"
#include "support/enum_names.h"

namespace quatrain::nn {

namespace {

constexpr EnumNames<Gates, 3> kGates{
    {{Gates::automatic, "automatic"}, {Gates::packed, "packed"}, {Gates::separate, "separate"}}};

// In the order of the gates.
const char* letters(ops::Cell cell) {
  return ops::has_memory(cell) ? "ifgo" : cell == ops::Cell::gru ? "rzn" : "h";
}

}  // namespace

const char* name(Gates gates) {
  return name_of(kGates, gates);
}

Gates parse_gates(std::string_view name) {
  return parse_name(kGates, "gates", name);
}

ops::Cell cell_of(const Nonlinearity& nonlinearity) {
  return std::holds_alternative<torch::enumtype::kReLU>(nonlinearity) ? ops::Cell::rnn_relu
                                                                      : ops::Cell::rnn_tanh;
}

void RecurrentWeights::Options::check(const char* layer) const {
  require_divisible(layer, "input_size", input, map.algebra.n, "n");
  require_divisible(layer, "hidden_size", hidden, map.algebra.n, "n");
  require_probability(layer, "recurrent_dropout", recurrent.recurrent_dropout);
  require(map.bias || forget_bias == 0, layer, ": forget_bias = ", forget_bias,
          " starts biases, and bias = false leaves none");
  const int64_t chrono = recurrent.chrono;
  if (chrono == 0) return;
  require(chrono >= 3 && chrono <= 1000000000, layer,
          ": chrono must be a number of steps from 3 to 1000000000, or 0 for none, got ", chrono);
  require(ops::gates(cell) > 1, layer, ": chrono is for cells with gates, got ", chrono, "; leave it 0");
  require(map.bias, layer, ": chrono = ", chrono, " starts biases, and bias = false leaves none");
  require(forget_bias == 0, layer, ": chrono = ", chrono,
          " starts the forget gates' biases; leave forget_bias 0, got ", forget_bias);
}

void RecurrentWeights::make(torch::nn::Module& layer, Options options) {
  made_ = std::move(options);
  const int64_t gates = ops::gates(made_.cell);
  const bool learned = made_.map.algebra.learned && made_.map.algebra.n > 1;
  const Gates asked = made_.recurrent.gates;
  const bool separate = gates > 1 && (asked == Gates::separate || (asked == Gates::automatic && learned));
  const auto make_map = [&](HypercomplexWeight& map, int64_t in, int64_t out, int64_t maps,
                            const std::string& between) {
    WeightOptions weight;
    weight.algebra = made_.map.algebra;
    weight.in_features = in, weight.out_features = out, weight.maps = maps;
    weight.initialiser = made_.map.initialiser;
    weight.name = "S", weight.suffix = "_" + between + made_.suffix;
    map.make(layer, std::move(weight));
  };
  const auto make_maps = [&](std::vector<HypercomplexWeight>& maps, const std::string& from, int64_t in) {
    maps.assign(static_cast<size_t>(separate ? gates : 1), {});
    for (size_t k = 0; k < maps.size(); ++k)
      make_map(maps[k], in, separate ? made_.hidden : gates * made_.hidden, separate ? 1 : gates,
               from + (separate ? letters(made_.cell)[k] : 'h'));
  };
  make_maps(of_input_, "i", made_.input);
  make_maps(of_state_, "h", made_.projection > 0 ? made_.projection : made_.hidden);
  projection_.assign(made_.projection > 0 ? 1 : 0, {});
  for (HypercomplexWeight& map : projection_) make_map(map, made_.hidden, made_.projection, 1, "hr");
  bias_ih = bias_hh = at::Tensor();
  if (!made_.map.bias) return;
  const auto bias = [&](const char* name) {
    return layer.register_parameter(name + made_.suffix, torch::zeros({gates * made_.hidden}));
  };
  bias_ih = bias("bias_ih");
  if (!made_.recurrent.single_bias) bias_hh = bias("bias_hh");
  start_biases();
}

void RecurrentWeights::draw() {
  for (HypercomplexWeight* weight : weights()) weight->draw();
  start_biases();
}

void RecurrentWeights::start_biases() const {
  const at::NoGradGuard no_grad;
  if (bias_hh.defined()) bias_hh.zero_();
  if (bias_ih.defined())
    initialise_gate_biases_(bias_ih, made_.map.algebra.n, made_.cell, made_.forget_bias,
                            made_.recurrent.chrono);
}

std::vector<HypercomplexWeight*> RecurrentWeights::weights() {
  std::vector<HypercomplexWeight*> all;
  for (auto* maps : {&of_input_, &of_state_, &projection_})
    for (HypercomplexWeight& map : *maps) all.push_back(&map);
  return all;
}

std::optional<HypercomplexLayer::Place> RecurrentWeights::place_in_real(const std::string& parameter) const {
  const int64_t n = made_.map.algebra.n, gates = ops::gates(made_.cell);
  // (outer, component, p) of the real layer to (component, outer, p) of this one.
  const auto inside = [&](int64_t outer, int64_t size) {
    return torch::arange(size).view({outer, n, -1}).transpose(0, 1).flatten();
  };
  for (const auto& [maps, name] : {std::pair(&of_input_, "weight_ih"), std::pair(&of_state_, "weight_hh")})
    for (size_t k = 0; k < maps->size(); ++k) {
      if ((*maps)[k].key() != parameter) continue;
      HypercomplexLayer::Place place{name + made_.suffix, inside(gates, gates * made_.hidden), {}};
      if (maps->size() > 1) place.rows = torch::arange(made_.hidden) + static_cast<int64_t>(k) * made_.hidden;
      if (maps == &of_input_ && made_.directions > 1) place.columns = inside(made_.directions, made_.input);
      return place;
    }
  for (const HypercomplexWeight& map : projection_)
    if (map.key() == parameter) return HypercomplexLayer::Place{"weight_hr" + made_.suffix, {}, {}};
  for (const char* bias : {"bias_ih", "bias_hh"})
    if (bias + made_.suffix == parameter)
      return HypercomplexLayer::Place{parameter, inside(gates, gates * made_.hidden), {}};
  return std::nullopt;
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> RecurrentWeights::forward(const at::Tensor& x,
                                                                         const at::Tensor& batch_sizes,
                                                                         const at::Tensor& h,
                                                                         const at::Tensor& c, bool reverse,
                                                                         bool training) const {
  bool constant = true;
  const auto operands_of = [&](std::initializer_list<const std::vector<HypercomplexWeight>*> weights) {
    std::vector<ops::RecurrentMap> maps;
    for (const auto* part : weights)
      for (const HypercomplexWeight& weight : *part) {
        const auto operands = weight.operands(training);
        maps.push_back({operands.S, operands.product});
        constant = constant && operands.constant;
      }
    return maps;
  };
  // A gru's second bias is inside its reset gate; elsewhere the two are one.
  const bool gru = made_.cell == ops::Cell::gru, joined = bias_hh.defined() && !gru;
  const ops::RecurrentInputs inputs{.x = x,
                                    .maps = operands_of({&of_input_}),
                                    .bias = joined ? bias_ih + bias_hh : bias_ih,
                                    .way = made_.map.way};
  const std::vector<ops::RecurrentMap> maps = operands_of({&of_state_, &projection_});
  const double p = made_.recurrent.recurrent_dropout;
  at::Tensor mask;
  if (training && p > 0) mask = torch::dropout(torch::ones_like(h), p, true);
  return ops::recurrent_layer(inputs, batch_sizes, h, ops::has_memory(made_.cell) ? c : at::Tensor(), maps,
                              gru ? bias_hh : at::Tensor(), mask,
                              {.cell = made_.cell, .reverse = reverse, .constant = constant});
}

}  // namespace quatrain::nn
