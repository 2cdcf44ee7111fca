#include "quatrain/nn/recurrent_cell.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ops/reference.h"
#include "quatrain/nn/recurrent.h"

namespace quatrain {
namespace {

using nn::Gates;
using test::relative_error;

constexpr const char* kCellAlgebras[] = {"quaternion", "phm(4)", "phm(2)"};

// Both get the same numbers, drawn anew: the layer's names end with the number of a layer, the cell's do not.
template <class Layer, class Cell>
void give_the_same(Layer& layer, Cell& cell) {
  const torch::NoGradGuard no_grad;
  auto to = cell->named_parameters();
  ASSERT_EQ(to.size(), layer->parameters().size());
  for (auto& item : layer->named_parameters()) {
    const std::string name = item.key().substr(0, item.key().size() - 3);
    ASSERT_TRUE(to.contains(name)) << name;
    ASSERT_EQ(to[name].sizes(), item.value().sizes()) << name;
    to[name].copy_(item.value().normal_(0, 0.4));
  }
}

// The states of all steps, and behind those of an lstm the last c.
template <class Layer>
at::Tensor steps_of_layer(Layer& layer, const at::Tensor& x, const at::Tensor& h, const at::Tensor& c) {
  if constexpr (std::is_same_v<Layer, nn::LSTM>) {
    const auto [y, last] = layer->forward(x, std::tuple(h.unsqueeze(0), c.unsqueeze(0)));
    return torch::cat({y, std::get<1>(last)});
  } else {
    return std::get<0>(layer->forward(x, h.unsqueeze(0)));
  }
}
template <class Cell>
at::Tensor steps_of_cell(Cell& cell, const at::Tensor& x, at::Tensor h, at::Tensor c) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& step : x.unbind()) {
    if constexpr (std::is_same_v<Cell, nn::LSTMCell>)
      std::tie(h, c) = cell->forward(step, std::tuple(h, c));
    else
      h = cell->forward(step, h);
    all.push_back(h);
  }
  if (std::is_same_v<Cell, nn::LSTMCell>) all.push_back(c);
  return torch::stack(all);
}

template <class Layer, class Cell, class LayerOptions, class CellOptions>
void compare_with_layer(const LayerOptions& of_layer, const CellOptions& of_cell) {
  for (const auto type : {torch::kDouble, torch::kFloat}) {
    torch::manual_seed(3);
    Layer layer(of_layer);
    Cell cell(of_cell);
    layer->to(type), cell->to(type);
    give_the_same(layer, cell);
    if (testing::Test::HasFatalFailure()) return;
    const double near = type == torch::kDouble ? 1e-10 : 1e-3;
    const auto options = torch::TensorOptions(type).requires_grad(true);
    const at::Tensor x = torch::randn({3, 2, 8}, options), h = torch::randn({2, 16}, options),
                     c = torch::randn({2, 16}, options);
    const at::Tensor wanted = steps_of_layer(layer, x, h, c), states = steps_of_cell(cell, x, h, c);
    for (int64_t t = 0; t < wanted.size(0); ++t)
      EXPECT_LT(relative_error(states[t], wanted[t]), near) << "step " << t;
    if (type == torch::kDouble) {
      const at::Tensor weights = torch::randn_like(wanted);
      std::vector<at::Tensor> of_wanted = layer->parameters(), of_states = cell->parameters();
      for (auto* inputs : {&of_wanted, &of_states}) {
        inputs->insert(inputs->end(), {x, h});
        if (std::is_same_v<Layer, nn::LSTM>) inputs->push_back(c);
      }
      const auto expected = torch::autograd::grad({wanted}, of_wanted, {weights});
      const auto gradients = torch::autograd::grad({states}, of_states, {weights});
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_LT(relative_error(gradients[i], expected[i]), near) << "input " << i;
    }
    const torch::NoGradGuard no_grad;
    cell->eval();
    EXPECT_LT(relative_error(steps_of_cell(cell, x, h, c), wanted), near);
  }
}

TEST(RecurrentCells, StepsAreThoseOfALayer) {
  for (const std::string algebra : kCellAlgebras)
    for (const auto gates : {Gates::automatic, algebra == "quaternion" ? Gates::separate : Gates::packed})
      for (const bool single : {false, true})
        for (const bool other : {false, true}) {
          SCOPED_TRACE(algebra + ", " + nn::name(gates) + (single ? ", one bias" : "") +
                       (other ? ", printed or relu" : ""));
          const auto set = [&](auto options) {
            return options.algebra(algebra).gates(gates).single_bias(single);
          };
          compare_with_layer<nn::LSTM, nn::LSTMCell>(set(nn::LSTMOptions(8, 16)).printed(other),
                                                     set(nn::LSTMCellOptions(8, 16)).printed(other));
          if (!other)
            compare_with_layer<nn::GRU, nn::GRUCell>(set(nn::GRUOptions(8, 16)),
                                                     set(nn::GRUCellOptions(8, 16)));
          if (gates != Gates::automatic) continue;
          const auto through = other ? nn::Nonlinearity(torch::kReLU) : nn::Nonlinearity(torch::kTanh);
          compare_with_layer<nn::RNN, nn::RNNCell>(set(nn::RNNOptions(8, 16)).nonlinearity(through),
                                                   set(nn::RNNCellOptions(8, 16)).nonlinearity(through));
        }
}

// What each gate of a cell gets from x, and what from h, by its matrices and biases.
template <class Cell>
std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>> gates_of(Cell& cell, int64_t gates,
                                                                     const at::Tensor& x,
                                                                     const at::Tensor& h) {
  const int64_t n = cell->algebra().n;
  const auto by_gate = [&](const at::Tensor& rows) {  // (n, gates, p) becomes (gates, n, p)
    return rows.view({n, gates, 16 / n, -1}).transpose(0, 1).reshape({gates, 16, -1});
  };
  const auto weights = cell->weights();
  const size_t maps = weights.size() / 2;
  const auto products = [&](size_t first, const at::Tensor& values, const char* bias) {
    std::vector<at::Tensor> matrices;
    for (size_t k = 0; k < maps; ++k) matrices.push_back(weights[first + k]->matrix());
    const at::Tensor all = maps == 1 ? by_gate(matrices[0]) : torch::stack(matrices);
    at::Tensor sums = torch::matmul(all, values.t()).transpose(1, 2);
    const auto parameters = cell->named_parameters();
    if (parameters.contains(bias)) sums = sums + by_gate(parameters[bias]).transpose(1, 2);
    return sums.unbind();
  };
  return {products(0, x, "bias_ih"), products(maps, h, "bias_hh")};
}

TEST(RecurrentCells, AreTheirEquations) {
  torch::manual_seed(5);
  const auto doubles = torch::TensorOptions(torch::kDouble);
  for (const std::string algebra : kCellAlgebras)
    for (const auto gates : {Gates::separate, Gates::packed})
      for (const bool single : {false, true})
        for (const bool printed : {false, true}) {
          SCOPED_TRACE(algebra + ", " + nn::name(gates) + (single ? ", one bias" : "") +
                       (printed ? ", printed" : ""));
          const auto made = [&](auto cell) {
            const torch::NoGradGuard no_grad;
            cell->to(torch::kDouble);
            for (const at::Tensor& parameter : cell->parameters()) parameter.normal_(0, 0.4);
            return cell;
          };
          const auto set = [&](auto options) {
            return options.algebra(algebra).gates(gates).single_bias(single);
          };
          const torch::NoGradGuard no_grad;
          const at::Tensor x = torch::randn({3, 8}, doubles), h = torch::randn({3, 16}, doubles),
                           c = torch::randn({3, 16}, doubles);
          auto lstm = made(nn::LSTMCell(set(nn::LSTMCellOptions(8, 16)).printed(printed)));
          const auto [a, b] = gates_of(lstm, 4, x, h);
          const auto [h1, c1] = lstm->forward(x, std::tuple(h, c));
          const at::Tensor i = a[0] + b[0], f = a[1] + b[1], g = a[2] + b[2], o = a[3] + b[3];
          const at::Tensor memory = f.sigmoid() * c + i.sigmoid() * g.tanh();
          EXPECT_LT(relative_error(c1, memory), 1e-10);
          EXPECT_LT(relative_error(h1, printed ? o * memory : o.sigmoid() * memory.tanh()), 1e-10);
          if (printed) continue;
          auto gru = made(nn::GRUCell(set(nn::GRUCellOptions(8, 16))));
          const auto [of_x, of_h] = gates_of(gru, 3, x, h);
          const at::Tensor z = (of_x[1] + of_h[1]).sigmoid();
          const at::Tensor news = (of_x[2] + (of_x[0] + of_h[0]).sigmoid() * of_h[2]).tanh();
          EXPECT_LT(relative_error(gru->forward(x, h), (1 - z) * news + z * h), 1e-10);
        }
}

}  // namespace
}  // namespace quatrain
