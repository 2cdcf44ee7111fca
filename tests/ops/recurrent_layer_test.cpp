#include <ATen/Version.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <string>
#include <vector>

#include "ops/memory/step_memory.h"
#include "ops/reference.h"
#include "quatrain/recurrent_ops.h"
#include "system_memory.h"

namespace quatrain {
namespace {

using ops::Cell;

// A recurrent layer of n (d -> p) units, over sequences of so many rows a step.
struct Layer {
  Cell cell = Cell::lstm;
  std::string algebra = "quaternion";
  int64_t n = 4, p = 16, d = 12;
  std::vector<int64_t> sizes = std::vector<int64_t>(30, 5);
  bool separate = false, bias = true, masked = false, reverse = false, constant = false;
  int64_t projection = 0;
  ops::Way way = ops::Way::automatic;

  std::string text() const {
    return std::string(ops::name(cell)) + " " + algebra + " n=" + std::to_string(n) +
           " p=" + std::to_string(p) + " batch=" + std::to_string(sizes[0]) + (separate ? " separate" : "") +
           (reverse ? " reverse" : "");
  }
};

struct LayerArguments {
  ops::RecurrentInputs inputs;
  std::vector<ops::RecurrentMap> maps;
  at::Tensor h0, c0, bias, mask;

  std::vector<at::Tensor> differentiable() const {
    std::vector<at::Tensor> all{inputs.x, inputs.bias, h0, c0, bias};
    for (const auto* some : {&inputs.maps, &maps})
      for (const ops::RecurrentMap& map : *some) all.push_back(map.S), all.push_back(map.product.A);
    std::erase_if(all, [](const at::Tensor& t) { return !t.defined(); });
    return all;
  }
};

LayerArguments draw(const Layer& q) {
  const int64_t gates = ops::gates(q.cell), width = q.n * q.p, batch = q.sizes[0];
  const int64_t units = q.projection > 0 ? q.projection : q.p;  // of the state
  int64_t rows = 0;
  for (const int64_t size : q.sizes) rows += size;
  const auto map = [&](int64_t out, int64_t in) {
    const bool learned = q.algebra == "learned";
    return ops::RecurrentMap{torch::randn({q.n, out, in}) / (2 * static_cast<double>(q.n * in)),
                             {q.algebra, learned ? torch::randn({q.n, q.n, q.n}) : at::Tensor(), {}}};
  };
  LayerArguments a;
  a.inputs.x = torch::randn({rows, q.n * q.d});
  a.inputs.way = q.way;
  for (int64_t k = 0; k < (q.separate ? gates : 1); ++k) {
    a.inputs.maps.push_back(map(q.separate ? q.p : gates * q.p, q.d));
    a.maps.push_back(map(q.separate ? q.p : gates * q.p, units));
  }
  if (q.projection > 0) a.maps.push_back(map(q.projection, q.p));
  if (q.bias) a.inputs.bias = torch::randn({gates * width}), a.bias = torch::randn({gates * width});
  a.h0 = torch::randn({batch, q.n * units});
  if (ops::has_memory(q.cell)) a.c0 = torch::randn({batch, width});
  if (q.masked) a.mask = (torch::rand({batch, q.n * units}) < 0.7).to(torch::kFloat) / 0.7;
  return a;
}

LayerArguments in_type(LayerArguments a, at::ScalarType type) {
  const auto cast = [&](at::Tensor& t) {
    if (t.defined()) t = t.detach().to(type);
  };
  for (at::Tensor* t : {&a.inputs.x, &a.inputs.bias, &a.h0, &a.c0, &a.bias, &a.mask}) cast(*t);
  for (auto* maps : {&a.inputs.maps, &a.maps})
    for (ops::RecurrentMap& map : *maps) cast(map.S), cast(map.product.A);
  return a;
}

using Outputs = std::vector<at::Tensor>;

Outputs outputs(std::tuple<at::Tensor, at::Tensor, at::Tensor> of) {
  Outputs all{std::get<0>(of), std::get<1>(of)};
  if (std::get<2>(of).defined()) all.push_back(std::get<2>(of));
  return all;
}

Outputs run(const Layer& q, const LayerArguments& a) {
  return outputs(ops::recurrent_layer(a.inputs, torch::tensor(q.sizes, torch::kLong), a.h0, a.c0, a.maps,
                                      a.bias, a.mask,
                                      {.cell = q.cell, .reverse = q.reverse, .constant = q.constant}));
}

// In two steps.
Outputs composed(const Layer& q, const LayerArguments& a) {
  const auto& maps = a.inputs.maps;
  at::Tensor z;
  if (maps.size() == 1) {
    z = ops::linear(a.inputs.x, maps[0].S, a.inputs.bias, maps[0].product, q.way);
  } else {
    std::vector<at::Tensor> parts;
    for (const ops::RecurrentMap& map : maps)
      parts.push_back(ops::linear(a.inputs.x, map.S, {}, map.product, q.way).view({-1, q.n, 1, q.p}));
    z = torch::cat(parts, 2).flatten(1);
    if (a.inputs.bias.defined()) z = z + a.inputs.bias;
  }
  return outputs(ops::recurrence(z, torch::tensor(q.sizes, torch::kLong), a.h0, a.c0, a.maps, a.bias, a.mask,
                                 {.cell = q.cell, .reverse = q.reverse}));
}

// Over all steps at once, a few at a time, in any order of the rows; with few rows and many.
std::vector<Layer> layers() {
  const std::vector<int64_t> falling{17, 17, 16, 16, 9, 9, 9, 5, 5, 3, 3, 3, 1, 1, 1},
      many{150, 149, 149, 100, 64, 33, 33, 2};
  std::vector<Layer> all;
  for (const Cell cell : {Cell::lstm, Cell::lstm_printed, Cell::gru, Cell::rnn_tanh, Cell::rnn_relu}) {
    all.push_back({.cell = cell});
    all.push_back({.cell = cell, .p = 33, .sizes = falling, .masked = true, .reverse = true});
    all.push_back({.cell = cell, .p = 40, .sizes = many, .constant = true});
    all.push_back({.cell = cell, .p = 24, .sizes = many, .masked = true, .reverse = true});
    all.push_back({.cell = cell, .sizes = std::vector<int64_t>(100, 1), .bias = false, .reverse = true});
    all.push_back({.cell = cell, .algebra = "learned", .n = 3, .p = 7, .sizes = falling, .separate = true});
    all.push_back({.cell = cell, .algebra = "complex", .n = 2, .sizes = falling, .separate = true});
    all.push_back({.cell = cell, .algebra = "real", .n = 1, .p = 9, .d = 5, .constant = true});
    all.push_back({.cell = cell, .sizes = {4}});
  }
  all.push_back({.algebra = "dual", .n = 2, .p = 64, .d = 64, .sizes = std::vector<int64_t>(20, 16)});
  all.push_back({.algebra = "octonion", .n = 8, .p = 32, .d = 40, .sizes = std::vector<int64_t>(20, 16)});
  all.push_back({.algebra = "learned", .p = 64, .d = 64, .sizes = std::vector<int64_t>(20, 16)});
  all.push_back({.sizes = falling, .projection = 5});
  all.push_back({.sizes = many, .masked = true, .reverse = true, .projection = 9});
  all.push_back({.cell = Cell::lstm_printed, .p = 90, .sizes = falling, .constant = true, .projection = 70});
  all.push_back(
      {.algebra = "learned", .n = 3, .sizes = falling, .separate = true, .masked = true, .projection = 5});
  all.push_back({.way = ops::Way::materialised});
  return all;
}

TEST(RecurrentLayer, IsLinearAndThenRecurrence) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_grad;
  for (const Layer& q : layers()) {
    const LayerArguments a = draw(q);
    const Outputs expected = composed(q, in_type(a, torch::kDouble)), ours = run(q, a);
    ASSERT_EQ(ours.size(), expected.size());
    for (size_t i = 0; i < ours.size(); ++i)
      EXPECT_LT(test::relative_error(ours[i].to(torch::kDouble), expected[i]), 2e-5)
          << q.text() << ", output " << i;
    const Outputs wide = run(q, in_type(a, torch::kDouble));
    for (size_t i = 0; i < wide.size(); ++i)
      EXPECT_LT(test::relative_error(wide[i], expected[i]), 1e-12) << q.text() << ", output " << i;
  }
}

TEST(RecurrentLayer, HasTheSameBitsOnAnyNumberOfThreads) {
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  const int before = at::get_num_threads();
  for (Layer q : layers()) {
    if (q.n == 1 || q.way == ops::Way::materialised) continue;  // ATen's products
    // Threads that have sequences of their own multiply other numbers of rows: without AVX-512 that is MKL's
    // work too, whose bits depend on them.
    if (q.sizes[0] >= 32 && at::get_cpu_capability() != "AVX512") continue;
    q.p *= 3;
    // The planner may take H in the steps.
    for (const ops::Way way : {ops::Way::factored, ops::Way::mixed}) {
      const ops::WayGuard guard(way);
      const LayerArguments a = draw(q);
      for (int i = 0; i < 2; ++i) run(q, a);  // a learned tensor that is met again has factors
      Outputs first;
      for (const int threads : {1, 2, 3}) {
        at::set_num_threads(threads);
        const Outputs found = run(q, a);
        if (threads == 1) first = found;
        for (size_t i = 0; i < found.size(); ++i)
          EXPECT_TRUE(found[i].equal(first[i]))
              << ops::name(way) << ": " << q.text() << ", output " << i << ", threads " << threads;
      }
    }
  }
  at::set_num_threads(before);
}

TEST(RecurrentLayer, TrainsAsTheTwoDo) {
  torch::manual_seed(3);
  for (const Layer& q : {Layer{}, Layer{.cell = Cell::gru, .algebra = "learned", .separate = true},
                         Layer{.masked = true, .reverse = true, .projection = 3}}) {
    const LayerArguments a = draw(q);
    const std::vector<at::Tensor> leaves = a.differentiable();
    for (const at::Tensor& t : leaves) t.set_requires_grad(true);
    const auto gradients = [&](const Outputs& of) {
      at::Tensor sum = of[0].square().sum();
      for (size_t i = 1; i < of.size(); ++i) sum = sum + of[i].sin().sum();
      return torch::autograd::grad({sum}, leaves, {}, {}, false, /*allow_unused=*/true);
    };
    for (int i = 0; i < 2; ++i) gradients(run(q, a));  // a learned tensor that is met again has factors
    const auto found = gradients(run(q, a)), expected = gradients(composed(q, a));
    for (size_t i = 0; i < leaves.size(); ++i) {
      ASSERT_EQ(found[i].defined(), expected[i].defined()) << q.text() << ", argument " << i;
      EXPECT_TRUE(!found[i].defined() || found[i].equal(expected[i])) << q.text() << ", argument " << i;
    }
  }
}

TEST(RecurrentLayer, RefusesWhatDoesNotFit) {
  torch::manual_seed(4);
  const Layer q{.cell = Cell::gru};
  const LayerArguments good = draw(q);
  const auto refusal = [&](const auto& spoil) -> std::string {
    LayerArguments a = good;
    spoil(a);
    try {
      run(q, a);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "not refused";
  };
  const auto has = [](const char* text) { return testing::HasSubstr(text); };
  EXPECT_THAT(refusal([](auto& a) {
                a.inputs.x = torch::randn({150, 47});
              }),
              has("x must have the shape [150, 48], got [150, 47]"));
  EXPECT_THAT(refusal([](auto& a) {
                a.inputs.x = torch::randn({2, 75, 48});
              }),
              has("x must have the shape (rows, n d)"));
  EXPECT_THAT(refusal([](auto& a) {
                a.inputs.maps[0].S = torch::randn({4, 47, 12});
              }),
              has("S of the inputs must have the shape [4, 48, 12], got [4, 47, 12]"));
  EXPECT_THAT(refusal([](auto& a) { a.inputs.maps.resize(2, a.inputs.maps[0]); }),
              has("one map of the inputs for all gates, or one for each of the 3, got 2"));
  EXPECT_THAT(refusal([](auto& a) { a.inputs.maps.clear(); }), has("got none"));
  EXPECT_THAT(refusal([](auto& a) { a.inputs.bias = torch::randn({191}); }),
              has("bias of the inputs must have the shape [192], got [191]"));
  EXPECT_THAT(refusal([](auto& a) { a.inputs.x = a.inputs.x.to(torch::kDouble); }), has("as the inputs are"));
  EXPECT_THAT(refusal([](auto& a) { a.h0 = torch::randn({5, 63}); }), has("h0 must have the shape"));
  EXPECT_THAT(refusal([](auto& a) {
                a.inputs.x = torch::randn({149, 48});
              }),
              has("batch_sizes must be the inputs' 149 rows together, got 150"));
}

// One step after the other, each with the state that the one before left: those after the third take no
// memory for tensors from the system.
TEST(RecurrentLayer, GoesOnWithoutNewMemory) {
  torch::manual_seed(11);
  const torch::NoGradGuard no_grad;
  for (Layer q : {Layer{}, Layer{.cell = Cell::gru}, Layer{.cell = Cell::rnn_tanh, .masked = true},
                  Layer{.separate = true}, Layer{.projection = 8}, Layer{.algebra = "learned"},
                  Layer{.p = 256, .d = 256}, Layer{.algebra = "real", .n = 1}})
    for (const bool constant : {false, true}) {
      q.sizes = {1}, q.constant = constant;
      LayerArguments a = draw(q);
      const ops::StepMemory memory;
      const ops::StepMemory::Guard guard(memory);
      const test::SystemMemory system;
      for (int64_t step = 0; step < 12; ++step) {
        const int64_t before = system.blocks();
        const Outputs outputs = run(q, a);
        EXPECT_TRUE(step < 3 || system.blocks() == before) << q.text() << ", step " << step;
        a.h0 = outputs[1];
        if (a.c0.defined()) a.c0 = outputs[2];
      }
      EXPECT_GT(memory.blocks(), 0);
    }
}

}  // namespace
}  // namespace quatrain
