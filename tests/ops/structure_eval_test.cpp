// Eval mode takes the factors that training follows, and changes nothing of what training gets.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <thread>

#include "ops/reference.h"

namespace quatrain {
namespace {

using ops::Way;
using test::relative_error;
using Tensors = std::vector<at::Tensor>;

constexpr int64_t kRows = 200;  // with n = 4 and 512 values a row the planner says factored

at::Tensor structure_of_four() {
  torch::manual_seed(12);
  return torch::randn({4, 4, 4}) / 2;
}

/// By the table, in float64.
at::Tensor by_table(const at::Tensor& x, const at::Tensor& S, const at::Tensor& A) {
  return torch::linear(x.to(torch::kDouble), test::expanded(A.detach(), S.detach()));
}

at::Tensor in_eval(const at::Tensor& x, const at::Tensor& S, const at::Tensor& A) {
  const torch::NoGradGuard no_grad;
  return ops::linear(x, S, {}, {"learned", A, {}}, Way::automatic, std::nullopt, /*constant=*/true);
}

TEST(StructureInEval, TakesTheFactorsThatTrainingFollowsAndChangesNothingOfIt) {
  std::vector<Tensors> parameters;
  for (const bool evaluated : {false, true}) {
    torch::manual_seed(13);
    const at::Tensor x = torch::randn({kRows, 512}), A = structure_of_four().requires_grad_(),
                     S = torch::randn({4, 128, 128}, torch::requires_grad()) / 23;
    const Tensors leaves{A, S.detach().requires_grad_()};
    torch::optim::Adam optimizer(leaves, torch::optim::AdamOptions(1e-2));
    for (int step = 0; step < 8; ++step) {
      optimizer.zero_grad();
      ops::linear(x, leaves[1], {}, {"learned", A, {}}).square().sum().backward();
      optimizer.step();
      if (!evaluated) continue;
      // Met once, A has no factors yet; later they are those of the values before this step.
      const Way way = ops::planned_way(x, leaves[1], {"learned", A, {}}, /*constant=*/true);
      EXPECT_EQ(way == Way::factored, step > 0) << step;
      const at::Tensor y = in_eval(x, leaves[1], A);
      EXPECT_LT(relative_error(y, by_table(x, leaves[1], A).detach()), 1e-5);
      EXPECT_EQ(ops::structure_report(A).rank > 0, step > 0);
      // At values that training never meets; or it takes over what was found at its own.
      if (step % 2 == 0) continue;
      const torch::NoGradGuard no_grad;
      const at::Tensor kept = A.clone();
      A.add_(torch::randn({4, 4, 4}), 1e-3);
      EXPECT_LT(relative_error(in_eval(x, leaves[1], A), by_table(x, leaves[1], A)), 1e-5);
      A.copy_(kept);
    }
    EXPECT_EQ(ops::structure_report(A).steps, 7);  // those of training, met once before
    EXPECT_EQ(ops::structure_report(A).on_H, 0);
    parameters.push_back({A.detach(), leaves[1].detach()});
  }
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(torch::equal(parameters[0][i], parameters[1][i])) << i;
}

TEST(StructureInEval, StoredFactorsGiveTheSameBits) {
  torch::manual_seed(16);
  const at::Tensor x = torch::randn({kRows, 512}), S = torch::randn({4, 128, 128}),
                   A = structure_of_four().requires_grad_(), copy = A.detach().clone().requires_grad_();
  for (int time = 0; time < 2; ++time) ops::linear(x, S, {}, {"learned", A, {}});
  ops::set_structure_state(copy, ops::structure_state(A));
  const auto gradient = [&](const at::Tensor& of) {
    const at::Tensor y = ops::linear(x, S, {}, {"learned", of, {}});
    return torch::autograd::grad({y.square().sum()}, {of})[0];
  };
  for (int step = 0; step < 2; ++step) {  // at the values that were stored, and at others
    EXPECT_TRUE(torch::equal(gradient(A), gradient(copy))) << step;
    EXPECT_TRUE(torch::equal(in_eval(x, S, A), in_eval(x, S, copy))) << step;
    const torch::NoGradGuard no_grad;
    A.add_(torch::full({4, 4, 4}, 1e-3)), copy.copy_(A);
  }
  EXPECT_EQ(ops::structure_report(copy).on_H, 0);
  EXPECT_EQ(ops::structure_report(copy).solved, ops::structure_report(A).solved);
}

TEST(StructureInEval, LeavesFactorsThatCannotFollow) {
  torch::manual_seed(14);
  const at::Tensor x = torch::randn({kRows, 512}), S = torch::randn({4, 128, 128}), A = structure_of_four();
  for (int time = 0; time < 2; ++time) ops::linear(x, S, {}, {"learned", A, {}});
  const at::Tensor state = ops::structure_state(A), copy = A.clone();
  ops::set_structure_state(copy, state);  // as where a run is loaded
  EXPECT_EQ(ops::planned_way(x, S, {"learned", copy, {}}, true), Way::factored);
  EXPECT_LT(relative_error(in_eval(x, S, copy), by_table(x, S, A)), 1e-5);
  const at::Tensor another = torch::randn({4, 4, 4});
  for (const at::Tensor& far : {another, torch::zeros({4, 4, 4}), torch::full({4, 4, 4}, std::nan(""))}) {
    copy.copy_(far);
    const at::Tensor expected = by_table(x, S, far).to(torch::kFloat);
    for (int time = 0; time < 2; ++time)
      EXPECT_TRUE(torch::allclose(in_eval(x, S, copy), expected, 1e-4, 1e-4, /*equal_nan=*/true));
    EXPECT_NE(ops::planned_way(x, S, {"learned", copy, {}}, true), Way::factored);
    EXPECT_TRUE(torch::equal(ops::structure_state(copy), state));
  }
}

TEST(StructureInEval, BackwardPassesOfTrainingTakeNoneOfIt) {
  std::vector<Tensors> gradients;
  for (const bool evaluated : {false, true}) {
    torch::manual_seed(17);
    const at::Tensor x = torch::randn({kRows, 512}), S = torch::randn({4, 128, 128}),
                     A = structure_of_four().requires_grad_();
    for (int time = 0; time < 2; ++time) ops::linear(x, S, {}, {"learned", A, {}});
    {
      const torch::NoGradGuard no_grad;
      A.add_(torch::full({4, 4, 4}, 1e-3));
    }
    if (evaluated) in_eval(x, S, A);
    // As of a recurrent layer, whose forward pass may have had too few rows to follow A.
    const auto [dx, dS, dA] =
        ops::linear_backward(x, x, S, {"learned", A, {}}, Way::automatic, {}, {true, true, true});
    gradients.push_back({dx, dS, dA});
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(torch::equal(gradients[0][i], gradients[1][i])) << i;
}

TEST(StructureInEval, TrainingTakesOverThatFactorsCannotFollow) {
  std::vector<at::Tensor> states;
  for (const bool evaluated : {false, true}) {
    torch::manual_seed(18);
    const at::Tensor x = torch::randn({kRows, 512}), S = torch::randn({4, 128, 128}), A = structure_of_four();
    for (int time = 0; time < 2; ++time) ops::linear(x, S, {}, {"learned", A, {}});
    A.copy_(torch::randn({4, 4, 4}));
    if (evaluated) in_eval(x, S, A);
    ops::linear(x, S, {}, {"learned", A, {}});
    states.push_back(ops::structure_state(A));
  }
  EXPECT_TRUE(torch::equal(states[0], states[1]));
}

TEST(StructureInEval, ThreadsGetTheSameBits) {
  torch::manual_seed(15);
  const at::Tensor x = torch::randn({kRows, 512}), S = torch::randn({4, 128, 128}), A = structure_of_four();
  for (int time = 0; time < 2; ++time) ops::linear(x, S, {}, {"learned", A, {}});
  A.add_(torch::randn({4, 4, 4}), 1e-3);
  Tensors results(4);
  std::vector<std::thread> threads;
  for (at::Tensor& result : results) threads.emplace_back([&] { result = in_eval(x, S, A); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(relative_error(results[0], by_table(x, S, A)), 1e-5);
  EXPECT_FALSE(torch::equal(results[0], ops::linear(x, S, {}, {"learned", A, {}}, Way::materialised)));
  for (const at::Tensor& result : results) EXPECT_TRUE(torch::equal(result, results[0]));
}

}  // namespace
}  // namespace quatrain
