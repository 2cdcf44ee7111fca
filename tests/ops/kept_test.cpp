// What is kept beside tensors goes with them, and is never taken for another's.

#include "ops/kept.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <ATen/ops/rand.h>

#include "ops/reference.h"

namespace quatrain {
namespace {

using ops::Product;
using ops::Way;
using test::expanded;
using test::relative_error;
using test::table_of;
using testing::HasSubstr;

TEST(Kept, ALearnedTensorThatDiesTakesAllWithIt) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({3, 32}), S = torch::randn({4, 8, 8});
  size_t most = 0;
  const size_t before = ops::kept::count();
  for (int i = 0; i < 300; ++i) {  // as a parametrized layer asks in eval mode, and one that trains
    ops::linear(x, S, {}, {"learned", torch::randn({4, 4, 4}), {}}, Way::materialised, {}, true);
    ops::linear(x, torch::randn({4, 8, 8}), {}, {"quaternion", {}, {}}, Way::factored, {}, true);
    ops::linear_backward(torch::randn({3, 32}), x, torch::randn({4, 8, 8}), {"quaternion", {}, {}},
                         Way::factored, {}, {true, true, false});
    most = std::max(most, ops::kept::count());
  }
  EXPECT_LT(most, before + 40);
}

TEST(Kept, NoLayoutButDenseIsTaken) {
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({300, 256}), S = torch::randn({4, 64, 64});
  const at::Tensor wanted = x.to(torch::kDouble).mm(expanded(table_of("quaternion"), S).t());
  for (const at::Tensor& other : {x.to_sparse(), x.to_sparse_csr(), x.to_mkldnn()}) {
    try {
      ops::linear(other, S, {}, {"quaternion", {}, {}}, Way::automatic, {}, true);
      ADD_FAILURE() << other.layout() << " was taken";
    } catch (const c10::Error& error) {
      EXPECT_THAT(error.what_without_backtrace(), HasSubstr("x must be a dense tensor"));
    }
    EXPECT_LT(relative_error(ops::linear(x, S, {}, {"quaternion", {}, {}}, Way::automatic, {}, true), wanted),
              1e-5);
  }
}

// The composed form's prepared weights are of another shape than the engine's: a type that the one serves and
// a type that the other does, on one weight.
TEST(Kept, ComposedAndPackedFormsAreTold) {
  const torch::NoGradGuard no_grad;
  const at::Tensor S = torch::randn({4, 16, 16}), x = torch::randn({0, 64}), y = torch::randn({64, 64});
  for (const at::Tensor& input : {x, y, x, y}) {
    const at::Tensor wanted = input.to(torch::kDouble).mm(expanded(table_of("quaternion"), S).t());
    EXPECT_LT(
        relative_error(ops::linear(input, S, {}, {"quaternion", {}, {}}, Way::factored, {}, true), wanted),
        1e-5);
  }
}

TEST(Kept, FactorsThatAreSetAnewArePackedAnew) {
  torch::manual_seed(4);
  const torch::NoGradGuard no_grad;
  const at::Tensor A = torch::randn({4, 4, 4}), S = torch::randn({4, 16, 16}), x = torch::randn({64, 64});
  const at::Tensor wanted = x.to(torch::kDouble).mm(expanded(A, S).t());
  ops::linear(x, S, {}, {"learned", A, {}}, Way::factored);
  const at::Tensor first = ops::structure_state(A);
  const auto evaluated = [&] { return ops::linear(x, S, {}, {"learned", A, {}}, Way::factored, {}, true); };
  EXPECT_LT(relative_error(evaluated(), wanted), 1e-5);
  // Factors of the same A, found another way: a scale that wanders from U to W.
  at::Tensor second = first.clone();
  const int64_t rank = static_cast<int64_t>(first[2].item<double>()), size = 4 * rank, head = 11 + 64;
  for (const int64_t base : {head, head + 3 * size}) {
    second.narrow(0, base, size).mul_(1.25);
    second.narrow(0, base + 2 * size, size).div_(1.25);
  }
  ops::set_structure_state(A, second);
  ASSERT_EQ(ops::structure_report(A).rank, rank);
  EXPECT_LT(relative_error(evaluated(), wanted), 1e-5);
}

TEST(Kept, NonContiguousLearnedTensors) {
  const at::Tensor A = torch::randn({3, 3, 3}, torch::kDouble).permute({2, 0, 1}),
                   S = torch::randn({3, 4, 5}, torch::kDouble), x = torch::randn({6, 15}, torch::kDouble),
                   grad = torch::randn({6, 12}, torch::kDouble);
  const at::Tensor wanted = x.mm(expanded(A, S).t());
  for (const at::ScalarType type : {at::kDouble, at::kFloat, at::kBFloat16, at::kHalf})
    for (const Way way : {Way::mixed, Way::materialised}) {
      const Product product{"learned", A.to(type), {}};
      ASSERT_FALSE(product.A.is_contiguous());
      const double allowed = at::elementSize(type) == 2 ? 3e-2 : 1e-5;
      EXPECT_LT(relative_error(ops::linear(x.to(type), S.to(type), {}, product, way), wanted), allowed)
          << type;
      const auto [dx, dS, dA] =
          ops::linear_backward(grad.to(type), x.to(type), S.to(type), product, way, {}, {true, true, true});
      EXPECT_LT(relative_error(dx, grad.mm(expanded(A, S))), allowed) << type;
    }
}

TEST(Kept, SizesHaveBounds) {
  const auto refused = [](const char* algebra, const at::Tensor& A) {
    try {
      ops::linear(torch::randn({1, 700}), torch::randn({70, 10, 10}), {}, {algebra, A, {}});
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string("taken");
  };
  EXPECT_THAT(refused("learned", torch::randn({70, 70, 70})),
              HasSubstr("S must have 1 to 64 blocks, got 70"));
  EXPECT_THAT(refused("factored", torch::randn({3, 70, 4})), HasSubstr("S must have 1 to 64 blocks, got 70"));
}

TEST(Kept, NoBlocksAreRefusedInTrainingToo) {
  const at::Tensor A = torch::randn({0, 0, 0}).requires_grad_();
  EXPECT_THROW(ops::linear(torch::randn({3, 0}), torch::randn({0, 2, 2}), {}, {"learned", A, {}}),
               c10::Error);
}

// At the quaternions' table the generic rank does not serve: with the one that does, H is cheaper here.
TEST(Kept, ThePlannedWayIsTheOneTaken) {
  torch::manual_seed(5);
  const at::Tensor A = table_of("quaternion").to(torch::kFloat).contiguous(), S = torch::randn({4, 64, 150}),
                   x = torch::randn({128, 600});
  const Product product{"learned", A, {}};
  for (int i = 0; i < 3; ++i) ops::linear(x, S, {}, product);
  const ops::StructureReport report = ops::structure_report(A);
  const Way planned = ops::planned_way(x, S, product);
  EXPECT_EQ(planned == Way::factored, report.on_H == 0) << ops::name(planned) << ", " << report.on_H;
}

// One storage of trained factors, cut as those of n = 4 and of n = 6, has the same values for both.
TEST(Kept, MixturesAreToldByTheirSizes) {
  torch::manual_seed(6);
  const torch::NoGradGuard no_grad;
  const at::Tensor four = torch::randn({3, 4, 6}), six = four.view({3, 6, 4});
  for (const Way way : test::all_ways())
    for (const at::Tensor& F : {four, six, four}) {
      const int64_t n = F.size(1);
      const at::Tensor S = torch::randn({n, 8, 8}), x = torch::randn({3, n * 8}),
                       A = torch::einsum("ir,br,ar->iab", {F[0], F[1], F[2]});
      EXPECT_LT(relative_error(ops::linear(x, S, {}, {"factored", F, {}}, way, {}, true),
                               x.to(torch::kDouble).mm(expanded(A, S).t())),
                1e-5)
          << ops::name(way) << ", n = " << n;
    }
}

TEST(Kept, ALearnedTensorRunsOnHTheFirstTimeAsPlanned) {
  torch::manual_seed(7);
  const torch::NoGradGuard no_grad;
  const at::Tensor S = torch::randn({4, 128, 128}), x = torch::randn({200, 512});
  const Product product{"learned", torch::randn({4, 4, 4}), {}};
  for (const Way way : {Way::materialised, Way::factored, Way::factored}) {
    EXPECT_EQ(ops::planned_way(x, S, product), way);
    const bool factored = std::get<1>(ops::linear_with_products(x, S, {}, product)).numel() > 0;
    EXPECT_EQ(factored, way == Way::factored);
  }
  const ops::WayGuard guard(Way::factored);  // who insists has it at once
  EXPECT_EQ(ops::planned_way(x, S, {"learned", torch::randn({4, 4, 4}), {}}), Way::factored);
}

}  // namespace
}  // namespace quatrain
