#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "ops/reference.h"
#include "quatrain/recurrent_ops.h"

namespace quatrain {
namespace {

using ops::Cell;
using test::relative_error;
using Tensors = std::vector<at::Tensor>;

constexpr Cell kCells[] = {Cell::lstm, Cell::lstm_printed, Cell::gru, Cell::rnn_tanh, Cell::rnn_relu};

// A recurrence and its arguments; `learned`: a learned A of n components, or trained factors in its place.
struct Sequences {
  Cell cell = Cell::lstm;
  std::string algebra = "quaternion";
  int64_t n = 4, p = 5;
  std::vector<int64_t> sizes{4, 4, 3, 1};
  bool separate = false, bias = true, masked = false, reverse = false;
  int64_t projection = 0;  // units of each component of h; 0 for none
  bool learned() const { return algebra == "learned" || algebra == "factored"; }
  std::vector<int64_t> structure() const {
    return algebra == "factored" ? std::vector<int64_t>{3, n, n + 2} : std::vector<int64_t>{n, n, n};
  }
  size_t gate_maps() const { return static_cast<size_t>(separate ? ops::gates(cell) : 1); }
  size_t maps() const { return gate_maps() + (projection > 0 ? 1 : 0); }
  int64_t state() const { return n * (projection > 0 ? projection : p); }
};

// z, h0, c0 (empty without memory), bias, S..., A...; those of a projection after those of the gates.
Tensors arguments(const Sequences& q, at::ScalarType type = torch::kDouble) {
  const int64_t gates = ops::gates(q.cell), width = q.n * q.p;
  int64_t rows = 0;
  for (const int64_t size : q.sizes) rows += size;
  const auto draw = [&](std::vector<int64_t> sizes) {
    return torch::randn(sizes, torch::kDouble).to(type).requires_grad_();
  };
  const int64_t batch = q.sizes.empty() ? 3 : q.sizes[0];
  Tensors all{draw({rows, gates * width}), draw({batch, q.state()}),
              draw({ops::has_memory(q.cell) ? batch : 0, width}), draw({gates * width})};
  const auto map = [&](int64_t out, int64_t in) {
    all.push_back(draw({q.n, out, in}).detach().mul_(0.1).requires_grad_());
  };
  for (size_t k = 0; k < q.gate_maps(); ++k) map(q.separate ? q.p : gates * q.p, q.state() / q.n);
  if (q.projection > 0) map(q.projection, q.p);
  if (q.learned())
    for (size_t k = 0; k < q.maps(); ++k) all.push_back(draw(q.structure()));
  return all;
}

at::Tensor mask_of(const Sequences& q, const at::Tensor& h0) {
  if (!q.masked) return {};
  const auto generator = torch::make_generator<at::CPUGeneratorImpl>(7);
  return (torch::rand(h0.sizes(), generator, torch::kFloat) < 0.7).to(h0.scalar_type()) / 0.7;
}

Tensors run(const Sequences& q, const Tensors& a) {
  std::vector<ops::RecurrentMap> all;
  for (size_t k = 0; k < q.maps(); ++k)
    all.push_back({a[4 + k], {q.algebra, q.learned() ? a[4 + q.maps() + k] : at::Tensor(), {}}});
  const auto [y, h, c] = ops::recurrence(
      a[0], torch::tensor(q.sizes, torch::kLong), a[1], ops::has_memory(q.cell) ? a[2] : at::Tensor(), all,
      q.bias ? a[3] : at::Tensor(), mask_of(q, a[1]), {.cell = q.cell, .reverse = q.reverse});
  return c.defined() ? Tensors{y, h, c} : Tensors{y, h};
}

// The same through H, row by row, from the equations.
Tensors expected(const Sequences& q, const Tensors& a) {
  const int64_t n = q.n, p = q.p;
  const auto by_gate = [&](const at::Tensor& t) { return t.reshape({n, -1, p}); };  // a row
  const auto matrix = [&](size_t k) {
    return ops::materialise(a[4 + k], {q.algebra, q.learned() ? a[4 + q.maps() + k] : at::Tensor(), {}});
  };
  const at::Tensor mask = mask_of(q, a[1]);
  std::vector<int64_t> first{0};
  for (const int64_t size : q.sizes) first.push_back(first.back() + size);
  const auto steps = static_cast<int64_t>(q.sizes.size());
  Tensors y(static_cast<size_t>(first.back())), last_h, last_c;
  for (int64_t b = 0; b < a[1].size(0); ++b) {
    at::Tensor h = a[1][b].view({n, -1}), c = ops::has_memory(q.cell) ? a[2][b].view({n, p}) : at::Tensor();
    for (int64_t i = 0; i < steps; ++i) {
      const int64_t t = q.reverse ? steps - 1 - i : i;
      if (b >= q.sizes[static_cast<size_t>(t)]) continue;
      const int64_t row = first[static_cast<size_t>(t)] + b;
      const at::Tensor in = mask.defined() ? h * mask[b].view({n, -1}) : h;
      Tensors parts;
      for (size_t k = 0; k < q.gate_maps(); ++k) parts.push_back(by_gate(matrix(k).matmul(in.reshape({-1}))));
      at::Tensor r = torch::cat(parts, 1);
      if (q.bias) r = r + by_gate(a[3]);
      const at::Tensor z = by_gate(a[0][row]);
      const auto x = [&](int64_t g) { return z.select(1, g); };
      const auto s = [&](int64_t g) { return r.select(1, g); };
      const auto gate = [&](int64_t g) { return x(g) + s(g); };
      if (ops::has_memory(q.cell)) {
        c = gate(1).sigmoid() * c + gate(0).sigmoid() * gate(2).tanh();
        h = q.cell == Cell::lstm ? gate(3).sigmoid() * c.tanh() : gate(3) * c;
      } else if (q.cell == Cell::gru) {
        const at::Tensor update = gate(1).sigmoid(), fresh = (x(2) + gate(0).sigmoid() * s(2)).tanh();
        h = (1 - update) * fresh + update * h;
      } else {
        h = q.cell == Cell::rnn_tanh ? gate(0).tanh() : gate(0).relu();
      }
      if (q.projection > 0) h = matrix(q.gate_maps()).matmul(h.reshape({-1})).view({n, -1});
      y[static_cast<size_t>(row)] = h.reshape({-1});
    }
    last_h.push_back(h.reshape({-1}));
    if (c.defined()) last_c.push_back(c.reshape({-1}));
  }
  Tensors all{torch::stack(y), torch::stack(last_h)};
  if (!last_c.empty()) all.push_back(torch::stack(last_c));
  return all;
}

Tensors gradients(const Tensors& outputs, const Tensors& of, bool create_graph = false) {
  at::Tensor sum = torch::zeros({}, outputs[0].options());
  for (size_t i = 0; i < outputs.size(); ++i)
    sum =
        sum + (outputs[i] * torch::arange(outputs[i].numel(), outputs[i].options()).view_as(outputs[i]).cos())
                  .sum();
  return torch::autograd::grad({sum}, of, {}, true, create_graph, true);
}

std::vector<Sequences> problems() {
  std::vector<Sequences> all;
  for (const Cell cell : kCells) {
    all.push_back({.cell = cell});
    all.push_back({.cell = cell, .sizes = {3, 3, 2, 2, 1}, .masked = true, .reverse = true});
    all.push_back({.cell = cell, .algebra = "learned", .n = 3, .p = 4, .separate = true});
    all.push_back({.cell = cell, .algebra = "factored", .separate = true});
    all.push_back({.cell = cell, .algebra = "factored", .n = 2, .p = 6, .masked = true, .reverse = true});
    all.push_back({.cell = cell, .algebra = "real", .n = 1, .p = 7, .bias = false});
    all.push_back({.cell = cell, .algebra = "complex", .n = 2, .p = 17, .sizes = {1}, .separate = true});
    all.push_back({.cell = cell, .algebra = "real", .n = 1, .p = 9, .sizes = {3}});
  }
  for (const Cell cell : {Cell::lstm, Cell::lstm_printed}) {
    all.push_back({.cell = cell, .projection = 3});
    all.push_back({.cell = cell, .sizes = {3, 3, 2, 2, 1}, .masked = true, .reverse = true, .projection = 7});
    all.push_back({.cell = cell, .algebra = "learned", .n = 3, .p = 4, .separate = true, .projection = 2});
    all.push_back({.cell = cell, .algebra = "learned", .n = 2, .p = 4, .masked = true, .projection = 1});
    all.push_back({.cell = cell, .algebra = "factored", .separate = true, .projection = 3});
  }
  return all;
}

std::string text(const Sequences& q) {
  return std::string(ops::name(q.cell)) + " " + q.algebra + " n=" + std::to_string(q.n) +
         (q.separate ? " separate" : "") + " projection=" + std::to_string(q.projection);
}

TEST(Recurrence, IsTheEquations) {
  torch::manual_seed(1);
  for (const Sequences& q : problems()) {
    const Tensors a = arguments(q), ours = run(q, a), theirs = expected(q, a);
    for (size_t i = 0; i < theirs.size(); ++i)
      EXPECT_LT(relative_error(ours[i], theirs[i]), 1e-12) << text(q) << ", output " << i;
    const Tensors mine = gradients(ours, a), wanted = gradients(theirs, a);
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(mine[i].defined(), wanted[i].defined()) << text(q) << ", argument " << i;
      if (mine[i].defined() && mine[i].numel() > 0) {
        EXPECT_LT(relative_error(mine[i], wanted[i]), 1e-11) << text(q) << ", argument " << i;
      }
    }
  }
}

TEST(Recurrence, InFloat32OnTheEngine) {
  torch::manual_seed(2);
  for (Sequences q : problems()) {
    if (q.sizes.size() > 1) q.sizes = {17, 17, 16, 5, 5, 1};
    const Tensors wide = arguments(q);
    Tensors a;
    for (const at::Tensor& t : wide) a.push_back(t.detach().to(torch::kFloat).requires_grad_());
    const Tensors ours = run(q, a), theirs = expected(q, wide);
    for (size_t i = 0; i < theirs.size(); ++i)
      EXPECT_LT(relative_error(ours[i].to(torch::kDouble), theirs[i]), 2e-5) << text(q) << ", output " << i;
    const Tensors mine = gradients(ours, a), wanted = gradients(theirs, wide);
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ(mine[i].defined(), wanted[i].defined()) << text(q) << ", argument " << i;
      if (mine[i].defined() && mine[i].numel() > 0) {
        EXPECT_LT(relative_error(mine[i].to(torch::kDouble), wanted[i]), 1e-4)
            << text(q) << ", argument " << i;
      }
    }
    // Without gradients, which keeps nothing for the way back.
    const torch::NoGradGuard no_grad;
    EXPECT_TRUE(run(q, a)[0].equal(ours[0])) << text(q);
  }
}

TEST(Recurrence, HasASecondDerivative) {
  torch::manual_seed(3);
  for (const Sequences& q : problems()) {
    const Tensors a = arguments(q);
    const auto twice = [&](const Tensors& outputs) {
      Tensors first;
      for (const at::Tensor& t : gradients(outputs, a, true))
        if (t.defined() && t.requires_grad() && t.numel() > 0) first.push_back(t);
      return gradients(first, a);
    };
    const Tensors mine = twice(run(q, a)), wanted = twice(expected(q, a));
    for (size_t i = 0; i < a.size(); ++i)
      if (wanted[i].defined() && wanted[i].numel() > 0) {
        EXPECT_LT(relative_error(mine[i], wanted[i]), 1e-9) << text(q) << ", argument " << i;
      }
  }
}

// Its inputs may have to do with each other: a state that came of the same weights, gates made of the state,
// one tensor twice.
TEST(Recurrence, RecordsItsGradientForInputsThatDependOnEachOther) {
  torch::manual_seed(3);
  for (const Cell cell : kCells)
    for (const bool learned : {false, true})
      for (const auto type : {torch::kFloat, torch::kDouble}) {
        const Sequences q{
            .cell = cell, .algebra = learned ? "learned" : "quaternion", .sizes = {3}, .separate = learned};
        Tensors a = arguments(q, type);
        SCOPED_TRACE(text(q));
        if (learned)  // one A for all maps
          for (size_t k = 1; k < q.maps(); ++k) a[4 + q.maps() + k] = a[4 + q.maps()];
        const auto loss = [&] {
          Tensors step = a;
          at::Tensor sum = torch::zeros({}, type);
          for (int t = 0; t < 4; ++t) {
            const Tensors outputs = run(q, step);
            step[1] = outputs[1];
            if (ops::has_memory(cell)) step[2] = t == 2 ? outputs[1] : outputs[2];  // h is c, once
            step[0] = a[0] + outputs[1].sum();
            sum = sum + outputs[0].pow(2).sum();
          }
          return sum;
        };
        const Tensors plain = torch::autograd::grad({loss()}, a, {}, {}, false, true),
                      recorded = torch::autograd::grad({loss()}, a, {}, true, true, true);
        for (size_t i = 0; i < a.size(); ++i)
          if (plain[i].defined() && plain[i].numel() > 0) {
            EXPECT_LT(relative_error(recorded[i], plain[i]), type == torch::kFloat ? 2e-5 : 1e-11) << i;
          }
      }
}

// Backpropagation through time in closed form, QRNN (12), (13) and appendix 6.3 with the printed errors
// mended, of h_t = tanh(W_hh (x) h_{t-1} + z_t), p_t = sigmoid(W_hy (x) h_t) and half the squares of p_t -
// y_t: e_t = (p_t - y_t) . beta', dW_hy = sum_t e_t (x) conj(h_t), d_t = (conj(W_hy)^T (x) e_t + conj(W_hh)^T
// (x) d_{t+1}) . alpha'(h_t), dW_hh = sum_t d_t (x) conj(h_{t-1}), Hamilton products of quaternions.
TEST(Recurrence, QuaternionGradientsAreTheClosedForm) {
  torch::manual_seed(4);
  constexpr int64_t kSteps = 5, kUnits = 3, kOutputs = 2;
  const Sequences q{.cell = Cell::rnn_tanh, .p = kUnits, .sizes = {1, 1, 1, 1, 1}, .bias = false};
  const Tensors a = arguments(q);
  const auto doubles = torch::TensorOptions(torch::kDouble);
  const at::Tensor S_hy = torch::randn({4, kOutputs, kUnits}, doubles).requires_grad_(),
                   wanted = torch::rand({kSteps, 4 * kOutputs}, doubles);
  const at::Tensor h = run(q, a)[0], p = ops::linear(h, S_hy, at::Tensor(), {"quaternion", {}, {}}).sigmoid();
  const Tensors found = torch::autograd::grad({(p - wanted).square().sum() / 2}, {a[0], a[4], S_hy});
  // (units, 4): a quaternion a row; W (units, units, 4).
  const auto numbers = [](const at::Tensor& row) { return row.view({4, -1}).t(); };
  const auto times = [](const at::Tensor& x, const at::Tensor& y) {
    return ops::hamilton_product(x.contiguous(), y.contiguous(), "quaternion");
  };
  const auto conjugate = [](const at::Tensor& x) {
    return ops::hypercomplex_conjugate(x.contiguous(), "quaternion");
  };
  const torch::NoGradGuard no_grad;
  const at::Tensor W = a[4].permute({1, 2, 0}), W_hy = S_hy.permute({1, 2, 0});
  // conj(map)^T (x) e, and e (x) conj(x) for a map's gradient.
  const auto back = [&](const at::Tensor& map, const at::Tensor& e) {
    at::Tensor reached = torch::zeros({kUnits, 4}, doubles);
    for (int64_t to = 0; to < map.size(0); ++to)
      for (int64_t from = 0; from < kUnits; ++from) reached[from] += times(conjugate(map[to][from]), e[to]);
    return reached;
  };
  const auto add_products = [&](const at::Tensor& e, const at::Tensor& x, const at::Tensor& sum) {
    for (int64_t to = 0; to < sum.size(0); ++to)
      for (int64_t from = 0; from < kUnits; ++from) sum[to][from] += times(e[to], conjugate(x[from]));
  };
  at::Tensor d = torch::zeros({kUnits, 4}, doubles);
  const at::Tensor dW = torch::zeros_like(W), dW_hy = torch::zeros_like(W_hy);
  for (int64_t t = kSteps - 1; t >= 0; --t) {
    const at::Tensor e = numbers((p[t] - wanted[t]) * p[t] * (1 - p[t]));
    add_products(e, numbers(h[t]), dW_hy);
    d = (back(W_hy, e) + back(W, d)) * (1 - numbers(h[t]).pow(2));
    EXPECT_LT(relative_error(numbers(found[0][t]), d), 1e-12) << "step " << t;
    add_products(d, numbers(t > 0 ? h[t - 1] : a[1][0]), dW);
  }
  EXPECT_LT(relative_error(found[1].permute({1, 2, 0}), dW), 1e-12);
  EXPECT_LT(relative_error(found[2].permute({1, 2, 0}), dW_hy), 1e-12);
}

// Over many steps the weights are combined once, so that the factored way serves few rows too.
TEST(Recurrence, TrainsALearnedMapOnItsFactors) {
  torch::manual_seed(6);
  const Sequences q{.algebra = "learned", .p = 64, .sizes = std::vector<int64_t>(9, 16)};
  const Tensors wide = arguments(q);
  Tensors a;
  for (const at::Tensor& t : wide) a.push_back(t.detach().to(torch::kFloat).requires_grad_());
  for (int i = 0; i < 2; ++i) run(q, a);
  EXPECT_GT(ops::structure_report(a[5]).rank, 0);
  const Tensors mine = gradients(run(q, a), a), wanted = gradients(expected(q, wide), wide);
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_LT(relative_error(mine[i].to(torch::kDouble), wanted[i]), 1e-4) << "argument " << i;
}

// Few rows, whose products are cut into columns; many, of which each thread has its own sequences; maps of a
// gate each.
TEST(Recurrence, HasTheSameBitsOnAnyNumberOfThreads) {
  torch::manual_seed(5);
  const std::vector<int64_t> few{5, 5, 3, 1}, many{70, 70, 69, 33, 32, 4};
  std::vector<Sequences> all;
  for (const Cell cell : {Cell::lstm, Cell::gru}) {
    all.push_back({.cell = cell, .p = 64, .sizes = {1, 1, 1}});
    all.push_back({.cell = cell, .p = 67, .sizes = few, .masked = true, .reverse = true});
    all.push_back({.cell = cell, .p = 72, .sizes = few, .separate = true, .masked = true});
    all.push_back({.cell = cell, .p = 48, .sizes = many, .masked = true, .reverse = true});
    all.push_back({.cell = cell, .algebra = "learned", .p = 64, .sizes = many});
    all.push_back({.cell = cell, .algebra = "learned", .p = 128, .sizes = {16, 16}, .separate = true});
  }
  const int before = at::get_num_threads();
  for (const Sequences& q : all) {
    Tensors a = arguments(q, torch::kFloat), found[2];
    for (int i = 0; i < 2; ++i) run(q, a);  // a learned tensor that is met again has factors
    for (const int threads : {1, 2, 3}) {
      at::set_num_threads(threads);
      Tensors& to = found[threads > 1];
      to = run(q, a);
      const Tensors states(a.begin(), a.begin() + (ops::has_memory(q.cell) ? 3 : 2));
      for (const at::Tensor& t : gradients(to, states)) to.push_back(t);
      {
        const torch::NoGradGuard no_grad;
        to.push_back(run(q, a)[0]);
      }
      for (size_t i = 0; i < to.size(); ++i)
        EXPECT_TRUE(to[i].equal(found[0][i])) << text(q) << ", result " << i << ", threads " << threads;
    }
  }
  at::set_num_threads(before);
}

TEST(Recurrence, WithoutSteps) {
  Sequences q;
  q.sizes = {};
  const Tensors a = arguments(q, torch::kFloat);
  const Tensors outputs = run(q, a);
  EXPECT_EQ(outputs[0].sizes(), (std::vector<int64_t>{0, 20}));
  EXPECT_TRUE(outputs[1].equal(a[1]));
  EXPECT_TRUE(outputs[2].equal(a[2]));
  q.projection = 3;
  const Tensors projecting = arguments(q, torch::kFloat), projected = run(q, projecting);
  EXPECT_EQ(projected[0].sizes(), (std::vector<int64_t>{0, 12}));
  EXPECT_TRUE(projected[1].equal(projecting[1]));
  for (const at::Tensor& grad : gradients(projected, {projecting[1], projecting[2]}))
    EXPECT_GT(grad.abs().sum().item<float>(), 0);
}

TEST(Recurrence, RefusesWhatDoesNotFit) {
  const Sequences q;
  const Tensors a = arguments(q, torch::kFloat);
  const auto with = [&](size_t place, const at::Tensor& t) {
    Tensors changed = a;
    changed[place] = t;
    return run(q, changed);
  };
  EXPECT_THROW(with(0, torch::randn({12, 81})), c10::Error);
  EXPECT_THROW(with(1, torch::randn({4, 21})), c10::Error);
  EXPECT_THROW(with(2, torch::randn({3, 20})), c10::Error);
  EXPECT_THROW(with(3, torch::randn({79})), c10::Error);
  EXPECT_THROW(with(4, torch::randn({4, 20, 6})), c10::Error);
  EXPECT_THROW(with(0, torch::randn({12, 80}, torch::kDouble)), c10::Error);
  EXPECT_THROW(with(1, at::Tensor(torch::randn({5, 20}))), c10::Error);
  const auto refusal = [](const Sequences& asked, const Tensors& arguments) -> std::string {
    try {
      run(asked, arguments);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "not refused";
  };
  const Sequences projecting{.projection = 3};
  Tensors changed = arguments(projecting, torch::kFloat);
  changed[5] = torch::randn({4, 4, 5});
  EXPECT_THAT(refusal(projecting, changed),
              testing::HasSubstr("S of the projection must have the shape [4, 3, 5], got [4, 4, 5]"));
  changed[5] = torch::randn({4, 3, 6});
  EXPECT_THAT(refusal(projecting, changed),
              testing::HasSubstr("the weights S must have the shape [4, 24, 3]"));
  for (const Sequences& empty : {Sequences{.p = 0}, Sequences{.p = 0, .projection = 3}})
    EXPECT_THAT(refusal(empty, arguments(empty)), testing::HasSubstr("each S must have a unit or more"));
  const Sequences gru{.cell = Cell::gru, .projection = 3};
  EXPECT_THAT(refusal(gru, arguments(gru, torch::kFloat)),
              testing::HasSubstr("one for each of the 3, got 2"));
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{4, 5, 3}, {4, 4, 4, 0}, {4, 4}}) {
    Sequences wrong;
    wrong.sizes = sizes;
    EXPECT_THROW(run(wrong, a), c10::ValueError);
  }
}

}  // namespace
}  // namespace quatrain
