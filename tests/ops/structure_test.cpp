// Training with a learned structure tensor: its factors are followed from step to step, its gradient comes
// from theirs. Held against autograd through the literal H in float64.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <functional>
#include <limits>

#include "ops/reference.h"

namespace quatrain {
namespace {

using ops::Product;
using ops::Way;
using test::relative_error;
using test::table_of;
using Tensors = std::vector<at::Tensor>;

/// x H^T with H = sum_i A_i (x) S_i, in plain differentiable calls.
at::Tensor literal(const at::Tensor& x, const at::Tensor& S, const at::Tensor& A) {
  const int64_t n = S.size(0), m = S.size(1), p = S.size(2);
  return torch::linear(x, torch::einsum("iab,imp->ambp", {A, S}).reshape({n * m, n * p}));
}

/// y, then dx, dS, dA for a gradient of y.
using Map = std::function<at::Tensor(const at::Tensor&, const at::Tensor&, const at::Tensor&)>;
Tensors evaluate(const Map& map, const at::Tensor& grad, at::ScalarType type, const Tensors& inputs) {
  Tensors leaves;
  for (const at::Tensor& t : inputs) leaves.push_back(t.detach().to(type).clone().requires_grad_());
  Tensors result{map(leaves[0], leaves[1], leaves[2])};
  for (const at::Tensor& d : torch::autograd::grad({result[0]}, leaves, {grad.to(type)})) result.push_back(d);
  return result;
}

struct LayerSizes {
  int64_t rows, m, p;
};

/// The learned map and its gradients at A, the way given or left free, against the literal ones.
void check_at(const at::Tensor& A, const LayerSizes& sizes, Way way, double tolerance) {
  const int64_t n = A.size(0);
  const at::Tensor x = torch::randn({sizes.rows, n * sizes.p}), S = torch::randn({n, sizes.m, sizes.p}),
                   grad = torch::randn({sizes.rows, n * sizes.m});
  const auto expected = evaluate(&literal, grad, torch::kDouble, {x, S, A});
  const auto got = evaluate(
      [&](const at::Tensor& x_, const at::Tensor& S_, const at::Tensor& A_) {
        if (way == Way::automatic) {  // met once before: only then are factors sought
          const torch::NoGradGuard no_grad;
          ops::linear(x_, S_, {}, {"learned", A_, {}});
        }
        return ops::linear(x_, S_, {}, {"learned", A_, {}}, way);
      },
      grad, torch::kFloat, {x, S, A});
  const char* names[] = {"y", "dx", "dS", "dA"};
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_LT(relative_error(got[i], expected[i]), tolerance) << names[i];
}

TEST(Structure, GradientsAtRandomTensors) {
  torch::manual_seed(1);
  for (const int64_t n : {2, 3, 4, 5, 6, 8}) {
    SCOPED_TRACE("n = " + std::to_string(n));
    check_at(torch::randn({n, n, n}), {40, 9, 7}, Way::factored, 1e-5);
  }
}

/// Tensors where exact factors exist whose gradient says nothing of A's: a layer may well start there.
std::vector<std::pair<std::string, at::Tensor>> structured() {
  at::Tensor identity = torch::zeros({4, 4, 4});
  identity[0] = torch::eye(4);
  std::vector<std::pair<std::string, at::Tensor>> result{
      {"the identity", identity},
      {"equal slices", torch::randn({1, 4, 4}).expand({4, 4, 4}).contiguous()},
      {"one slice", torch::cat({torch::randn({1, 4, 4}), torch::zeros({3, 4, 4})})},
      {"ones", torch::ones({4, 4, 4})}};
  for (const std::string name : {"quaternion", "split_quaternion", "tessarine", "cyclic(4)"})
    result.emplace_back(name, table_of(name));
  return result;
}

TEST(Structure, GradientsAtEveryStart) {
  torch::manual_seed(2);
  constexpr LayerSizes kSizes{600, 64, 64};
  for (const auto& [name, A] : structured()) {
    SCOPED_TRACE(name);
    check_at(A, kSizes, Way::automatic, 1e-4);
  }
}

// At the quaternions' table factors of rank 8 exist, and their Jacobian is rank deficient: sound ones have
// more.
TEST(Structure, AForcedWayIsSoundOrRefused) {
  torch::manual_seed(3);
  const at::Tensor x = torch::randn({3, 8}), S = torch::randn({4, 2, 2});
  for (const auto& [name, table] : structured()) {
    SCOPED_TRACE(name);
    const at::Tensor A = table.to(torch::kFloat);
    try {
      const at::Tensor y = ops::linear(x, S, {}, {"learned", A, {}}, Way::factored);
      EXPECT_LT(
          relative_error(y, literal(x.to(torch::kDouble), S.to(torch::kDouble), table.to(torch::kDouble))),
          1e-5);
      EXPECT_GE(ops::structure_report(A).rank, 8);
      check_at(A, {40, 9, 7}, Way::factored, 1e-4);
    } catch (const c10::Error& error) {
      EXPECT_THAT(error.what_without_backtrace(), testing::HasSubstr("needs factors of the learned A"));
      EXPECT_EQ(ops::structure_report(A).rank, 0);
      EXPECT_EQ(ops::structure_report(A).on_H, 1);
    }
  }
}

/// Two layers of one learned tensor, or one, trained with Adam on a random teacher's outputs.
struct Training {
  Tensors parameters;  // A, then S of each layer
  ops::StructureReport report;
};
Training train(const at::Tensor& start, const LayerSizes& sizes, int layers, double rate, int steps,
               bool in_double) {
  torch::manual_seed(11);
  const int64_t n = start.size(0);
  const auto type = in_double ? torch::kDouble : torch::kFloat;
  const at::Tensor x = torch::randn({sizes.rows, n * sizes.p}, torch::kDouble).to(type);
  const at::Tensor teacher = torch::randn({n * sizes.p, n * sizes.m}, torch::kDouble).to(type);
  const at::Tensor target = x.mm(teacher) / std::sqrt(static_cast<double>(n * sizes.p));
  Training run{{start.to(type).clone().requires_grad_()}, {}};
  for (int i = 0; i < layers; ++i)
    run.parameters.push_back(
        (torch::randn({n, sizes.m, sizes.p}, torch::kDouble) / std::sqrt(static_cast<double>(n * sizes.p)))
            .to(type)
            .requires_grad_());
  torch::optim::Adam optimizer(run.parameters, torch::optim::AdamOptions(rate));
  const at::Tensor& A = run.parameters[0];
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    at::Tensor y = x;
    for (int i = 1; i <= layers; ++i)
      y = in_double ? literal(y, run.parameters[static_cast<size_t>(i)], A)
                    : ops::linear(y, run.parameters[static_cast<size_t>(i)], {}, {"learned", A, {}});
    torch::mse_loss(y, target).backward();
    optimizer.step();
  }
  run.report = ops::structure_report(A);
  return run;
}

at::Tensor random_structure(int64_t n) {
  torch::manual_seed(12);
  return torch::randn({n, n, n}) / std::sqrt(static_cast<double>(n));
}

constexpr LayerSizes kPlanned{200, 128, 128};  // with n = 4 the planner says factored

void expect_agreement(const Training& run, const Training& expected, double tolerance) {
  for (size_t i = 0; i < run.parameters.size(); ++i)
    EXPECT_LT(relative_error(run.parameters[i], expected.parameters[i]), tolerance) << (i == 0 ? "A" : "S");
}

TEST(Structure, AHundredStepsAgreeWithTheLiteralRun) {
  for (const double rate : {1e-2, 1e-3}) {
    SCOPED_TRACE("rate " + std::to_string(rate));
    const Training run = train(random_structure(4), kPlanned, 1, rate, 100, false);
    expect_agreement(run, train(random_structure(4), kPlanned, 1, rate, 100, true), 1e-4);
    EXPECT_GE(run.report.rank, 8);
    EXPECT_LE(run.report.on_H, 2);
  }
}

TEST(Structure, TrainsFromEveryStart) {
  for (const auto& [name, A] : structured()) {
    SCOPED_TRACE(name);
    const Training run = train(A, kPlanned, 1, 1e-2, 40, false);
    expect_agreement(run, train(A, kPlanned, 1, 1e-2, 40, true), 1e-4);
    EXPECT_EQ(run.report.steps, 39);
    EXPECT_LE(run.report.solved, 5);  // steps on H between them
  }
}

TEST(Structure, LayersThatShareAShareItsFactors) {
  const Training run = train(random_structure(4), kPlanned, 2, 1e-2, 20, false);
  expect_agreement(run, train(random_structure(4), kPlanned, 2, 1e-2, 20, true), 1e-4);
  EXPECT_EQ(run.report.solved, 1);
  EXPECT_EQ(run.report.on_H, 0);
  EXPECT_EQ(run.report.steps, 20);
}

TEST(Structure, TheSameRunGivesTheSameBits) {
  for (const at::Tensor& start : {random_structure(4), table_of("quaternion").to(torch::kFloat)}) {
    const Training first = train(start, kPlanned, 1, 1e-2, 15, false),
                   second = train(start, kPlanned, 1, 1e-2, 15, false);
    for (size_t i = 0; i < first.parameters.size(); ++i)
      EXPECT_TRUE(torch::equal(first.parameters[i], second.parameters[i]));
    EXPECT_EQ(first.report.solved, second.report.solved);
  }
}

TEST(Structure, ZeroIsLeftToH) {
  torch::manual_seed(4);
  check_at(torch::zeros({4, 4, 4}), kPlanned, Way::automatic, 1e-5);
  const Training run = train(torch::zeros({4, 4, 4}), kPlanned, 1, 1e-2, 10, false);
  expect_agreement(run, train(torch::zeros({4, 4, 4}), kPlanned, 1, 1e-2, 10, true), 1e-3);
}

TEST(Structure, NaNAndInfinityEndNothing) {
  torch::manual_seed(5);
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    at::Tensor A = torch::randn({4, 4, 4});
    const at::Tensor x = torch::randn({kPlanned.rows, 4 * kPlanned.p}),
                     S = torch::randn({4, kPlanned.m, kPlanned.p}, torch::requires_grad());
    const Product product{"learned", A, {}};
    for (int time = 0; time < 3; ++time) ops::linear(x, S, {}, product);
    EXPECT_GT(ops::structure_report(A).rank, 0);
    const at::Tensor kept = A.clone();
    A.mutable_data_ptr<float>()[5] = static_cast<float>(bad);
    for (int time = 0; time < 3; ++time) ops::linear(x, S, {}, product).sum().backward();
    EXPECT_FALSE(S.grad().isfinite().all().item<bool>());
    EXPECT_EQ(ops::structure_report(A).rank, 0);
    A.copy_(kept);  // and it goes on
    for (int time = 0; time < 3; ++time) ops::linear(x, S, {}, product);
    EXPECT_LT(relative_error(ops::linear(x, S, {}, product), literal(x, S, A)), 1e-5);
    EXPECT_EQ(ops::structure_report(A).solved, 2);
  }
}

// At a large rate factors are lost at once; searching again at every step would cost more than H.
TEST(Structure, LargeRatesDoNotSearchAtEveryStep) {
  const Training run = train(random_structure(4), kPlanned, 1, 1.0, 60, false);
  EXPECT_LE(run.report.solved, 6);
  EXPECT_GE(run.report.on_H, 30);
  for (const at::Tensor& t : run.parameters) EXPECT_TRUE(t.isfinite().all().item<bool>());
}

// Values without sound factors are searched once, however often they are asked for; and not at all where
// slices of A are dependent, as in the identity.
TEST(Structure, RefusedValuesAreNotSearchedAgain) {
  torch::manual_seed(6);
  const at::Tensor A = table_of("split_quaternion").to(torch::kFloat), x = torch::randn({kPlanned.rows, 256}),
                   S = torch::randn({4, 64, 64});
  const torch::NoGradGuard no_grad;
  for (int time = 0; time < 40; ++time) ops::linear(x, S, {}, {"learned", A, {}});
  EXPECT_ANY_THROW(ops::linear(x, S, {}, {"learned", A, {}}, Way::factored));
  EXPECT_EQ(ops::structure_report(A).solved, 1);
  EXPECT_EQ(ops::structure_report(A).on_H, 1);
  at::Tensor identity = torch::zeros({8, 8, 8});
  identity[0] = torch::eye(8);
  EXPECT_ANY_THROW(ops::linear(torch::randn({2, 16}), torch::randn({8, 2, 2}), {}, {"learned", identity, {}},
                               Way::factored));
  EXPECT_EQ(ops::structure_report(identity).solved, 0);
}

TEST(Structure, TemporariesCostNoSearch) {
  torch::manual_seed(7);
  const at::Tensor A = torch::randn({4, 4, 4}, torch::requires_grad()),
                   x = torch::randn({kPlanned.rows, 256}),
                   S = torch::randn({4, 64, 64}, torch::requires_grad());
  Tensors kept;
  for (int step = 0; step < 20; ++step) {
    const at::Tensor temporary = A * 2;  // often where an earlier one was
    const at::Tensor y = ops::linear(x, S, {}, {"learned", temporary, {}});
    EXPECT_EQ(ops::structure_report(temporary).solved, 0);
    y.sum().backward();
    EXPECT_EQ(ops::structure_report(temporary).solved, 0);
    if (step % 3 == 0) kept.push_back(temporary);
  }
}

/// y and the gradients of x, S and what the product holds, in float32.
Tensors with_products(ops::Products products, const at::Tensor& x, const at::Tensor& S,
                      const Product& product, Way way) {
  const ops::ProductsGuard guard(products);
  const Tensors leaves{x.detach().requires_grad_(), S.detach().requires_grad_(),
                       product.A.detach().requires_grad_()};
  Tensors result{ops::linear(leaves[0], leaves[1], {}, {product.algebra, leaves[2], {}}, way)};
  for (const at::Tensor& d : torch::autograd::grad({result[0]}, leaves, {torch::ones_like(result[0])}))
    result.push_back(d);
  return result;
}

// Several blocks of K and tails in every direction; rows beyond a chunk.
TEST(Structure, KeptProductsGiveTheGradientOfRecomputedOnes) {
  torch::manual_seed(9);
  for (const int64_t n : {2, 4, 8})
    for (const LayerSizes sizes : {LayerSizes{1, 5, 3}, LayerSizes{150, 37, 33}, LayerSizes{70, 9, 700}}) {
      SCOPED_TRACE("n = " + std::to_string(n) + ", p = " + std::to_string(sizes.p));
      const at::Tensor x = torch::randn({sizes.rows, n * sizes.p}), S = torch::randn({n, sizes.m, sizes.p});
      for (const Product& product : {Product{"learned", torch::randn({n, n, n}), {}},
                                     Product{"factored", torch::randn({3, n, n + 1}), {}}}) {
        const auto kept = with_products(ops::Products::kept, x, S, product, Way::factored),
                   again = with_products(ops::Products::recomputed, x, S, product, Way::factored);
        for (size_t i = 0; i < kept.size(); ++i) EXPECT_LT(relative_error(kept[i], again[i]), 2e-6);
      }
    }
}

// Without dx or products the three passes on the factors cost more than dH, which gives dS and dA at once.
TEST(Structure, GradientsWithoutThatOfTheInputComeFromH) {
  torch::manual_seed(12);
  const at::Tensor x = torch::randn({200, 512}), S = torch::randn({4, 128, 128}),
                   grad = torch::randn({200, 512});
  const Product product{"learned", torch::randn({4, 4, 4}), {}};
  for (int i = 0; i < 2; ++i) ops::linear_with_products(x, S, {}, product);
  ASSERT_EQ(ops::planned_way(x, S, product), Way::factored);
  const auto gradients = [&](Way way, const at::Tensor& products = {}) {
    return ops::linear_backward(grad, x, S, product, way, std::nullopt, {false, true, true}, products);
  };
  const auto found = gradients(Way::automatic), by_H = gradients(Way::materialised);
  EXPECT_TRUE(std::get<1>(found).equal(std::get<1>(by_H)));
  EXPECT_TRUE(std::get<2>(found).equal(std::get<2>(by_H)));
  const auto products = std::get<1>(ops::linear_with_products(x, S, {}, product));
  const auto kept = gradients(Way::automatic, products);
  EXPECT_FALSE(std::get<1>(kept).equal(std::get<1>(by_H)));
  EXPECT_LT(relative_error(std::get<2>(kept), std::get<2>(by_H)), 1e-4);
}

TEST(Structure, ProductsAreAsTheyAreDefined) {
  torch::manual_seed(10);
  const int64_t n = 3, R = 4;
  const at::Tensor F = torch::randn({3, n, R}), x = torch::randn({5, n * 2}), S = torch::randn({n, 7, 2});
  const auto [y, products] = ops::linear_with_products(x, S, {}, {"factored", F, {}}, Way::factored);
  const at::Tensor expected = torch::einsum("ir,imp,br,tbp->rtm", {F[0], S, F[1], x.view({5, n, 2})});
  EXPECT_LT(relative_error(products, expected), 1e-5);
  EXPECT_LT(relative_error(y.view({5, n, 7}), torch::einsum("ar,rtm->tam", {F[2], expected})), 1e-5);
  EXPECT_EQ(std::get<1>(ops::linear_with_products(x, S, {}, {"factored", F, {}}, Way::mixed)).numel(), 0);
}

// Any rank, far below and far above the generic one; every way; first and second derivatives.
TEST(Structure, TrainedFactorsHaveTheDerivativesOfTheirTensor) {
  torch::manual_seed(13);
  for (const int64_t n : {2, 3, 4, 8})
    for (const int64_t R : {int64_t{1}, n, n * n + 2})
      for (const Way way : test::all_ways()) {
        SCOPED_TRACE("n = " + std::to_string(n) + ", R = " + std::to_string(R) + ", " + ops::name(way));
        const at::Tensor F = torch::randn({3, n, R}), x = torch::randn({40, n * 7}),
                         S = torch::randn({n, 9, 7}), grad = torch::randn({40, n * 9});
        const auto expected = evaluate(
            [](const at::Tensor& x_, const at::Tensor& S_, const at::Tensor& F_) {
              return literal(x_, S_, torch::einsum("ir,br,ar->iab", {F_[0], F_[1], F_[2]}));
            },
            grad, torch::kDouble, {x, S, F});
        const auto map = [way](const at::Tensor& x_, const at::Tensor& S_, const at::Tensor& F_) {
          return ops::linear(x_, S_, {}, {"factored", F_, {}}, way);
        };
        for (const auto type : {torch::kFloat, torch::kDouble}) {
          const auto got = evaluate(map, grad, type, {x, S, F});
          for (size_t i = 0; i < expected.size(); ++i)
            EXPECT_LT(relative_error(got[i], expected[i]), type == torch::kFloat ? 1e-5 : 1e-13) << i;
        }
      }
}

TEST(Structure, TrainedFactorsTakeTheFactoredWay) {
  const at::Tensor F = torch::randn({3, 4, 6});
  EXPECT_EQ(ops::planned_way(torch::empty({600, 256}), torch::empty({4, 64, 64}), {"factored", F, {}}),
            Way::factored);
  EXPECT_EQ(ops::rank({"factored", F, {}}), 6);
}

TEST(Structure, OneStorageMayHoldTensorsOfSeveralSizes) {
  torch::manual_seed(8);
  const at::Tensor all = torch::randn({64});
  const at::Tensor large = all.view({4, 4, 4}), small = all.narrow(0, 0, 8).view({2, 2, 2});
  for (int time = 0; time < 3; ++time)
    for (const at::Tensor& A : {large, small, large.transpose(0, 2)}) {
      const int64_t n = A.size(0);
      const at::Tensor x = torch::randn({5, n * 3}), S = torch::randn({n, 2, 3});
      EXPECT_LT(relative_error(ops::linear(x, S, {}, {"learned", A, {}}, Way::factored), literal(x, S, A)),
                1e-5);
    }
}

// What reaches the gradient of A is no structure tensor that trains: factors of it are never sought, and
// where there are none, as of ones, H serves.
TEST(Structure, SecondDerivativesOfAForcedWayNeedNoFactorsOfDirections) {
  torch::manual_seed(14);
  const at::Tensor x = torch::randn({5, 12}), S = torch::randn({4, 2, 3}), A = torch::randn({4, 4, 4});
  const auto second = [&](const Map& map, at::ScalarType type) {
    Tensors leaves;
    for (const at::Tensor& t : {x, S, A}) leaves.push_back(t.to(type).requires_grad_());
    const at::Tensor y = map(leaves[0], leaves[1], leaves[2]);
    const at::Tensor dA = torch::autograd::grad({y.tanh().sum()}, {leaves[2]}, {}, true, true)[0];
    return torch::autograd::grad({dA.sum()}, leaves);
  };
  const auto expected = second(&literal, torch::kDouble);
  const auto forced = [](Way way) {
    return [way](const at::Tensor& x_, const at::Tensor& S_, const at::Tensor& A_) {
      return ops::linear(x_, S_, {}, {"learned", A_, {}}, way);
    };
  };
  Tensors by_argument = second(forced(Way::factored), torch::kFloat);
  const ops::WayGuard guard(Way::factored);
  Tensors by_guard = second(forced(Way::automatic), torch::kFloat);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT(relative_error(by_argument[i], expected[i]), 1e-4) << i;
    EXPECT_LT(relative_error(by_guard[i], expected[i]), 1e-4) << i;
  }
}

TEST(Structure, StatesOfHostileNumbersAreRefused) {
  torch::manual_seed(15);
  const torch::NoGradGuard no_grad;
  const at::Tensor A = torch::randn({3, 3, 3});
  ops::linear(torch::randn({2, 6}), torch::randn({3, 2, 2}), {}, {"learned", A, {}}, Way::factored);
  const at::Tensor state = ops::structure_state(A);
  const auto refusal = [&](const at::Tensor& to, const at::Tensor& stored) {
    try {
      ops::set_structure_state(to, stored);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string("taken");
  };
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  constexpr int64_t kWait = 7;  // any whole number
  for (int64_t place = 0; place < 11; ++place)
    for (const double value : {std::nan(""), kInfinite, -kInfinite, -1.0, 0.5, 1e300}) {
      if (place == kWait && value == -1) continue;
      at::Tensor hostile = state.clone();
      hostile[place] = value;
      EXPECT_THAT(refusal(A, hostile), testing::HasSubstr("set_structure_state: ")) << place << ": " << value;
    }
  at::Tensor hostile = state.clone();
  hostile[-1] = std::nan("");
  EXPECT_THAT(refusal(A, hostile), testing::HasSubstr("finite"));
  constexpr int64_t kRank = 2, kFirst = 11, kLargest = 8;
  for (int64_t place = kFirst; place < kFirst + 3 * 9 + 3 * 3 * state[kRank].item<int64_t>(); ++place) {
    hostile = state.clone();  // A's values, then those of its factors
    hostile[place] += 1;
    EXPECT_THAT(refusal(A, hostile), testing::HasSubstr("those of the tensor")) << place;
  }
  const int64_t n = kLargest + 1, cells = n * n * n;
  hostile = torch::cat({state.slice(0, 0, kFirst), torch::ones({cells + 6 * n})});
  hostile[1] = n, hostile[kRank] = 1;
  EXPECT_THAT(refusal(torch::ones({n, n, n}), hostile), testing::HasSubstr("from n = 2 to 8"));
  for (const at::Tensor& other : {torch::randn({27}), torch::randn({3, 9}), torch::randn({3, 3, 2})})
    EXPECT_THAT(refusal(other, state), testing::HasSubstr("(n, n, n)"));
  EXPECT_EQ(refusal(A, state), "taken");
  EXPECT_EQ(ops::structure_report(A).rank, state[2].item<int64_t>());
}

}  // namespace
}  // namespace quatrain
