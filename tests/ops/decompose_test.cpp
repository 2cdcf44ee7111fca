#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>

#include "quatrain/algebra.h"
#include "quatrain/ops.h"

namespace quatrain::ops {
namespace {

torch::Tensor random_tensor(int64_t n, uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  return at::randn({n, n, n}, generator, torch::kFloat64);
}

torch::Tensor table_of(const algebra::Algebra& algebra) {
  return torch::tensor(algebra.table(), torch::kFloat64).view({algebra.n(), algebra.n(), algebra.n()});
}

torch::Tensor product_of(const Decomposition& found) {
  return torch::einsum("ir,ar,br->iab", {found.factors[0], found.factors[2], found.factors[1]});
}

double relative_error(const Decomposition& found, const torch::Tensor& A) {
  const auto wanted = A.detach().to(torch::kFloat64);
  return ((product_of(found) - wanted).norm() / wanted.norm()).item<double>();
}

// Either factors that give A, or a refusal that says so.
void expect_honest(const torch::Tensor& A, const Decomposition& found, double tolerance = 1e-6) {
  if (!found.sound) {
    EXPECT_TRUE(found.factors.empty());
    EXPECT_GE(found.residual, tolerance);
    return;
  }
  ASSERT_EQ(found.factors.size(), 3u);
  for (const auto& factor : found.factors) {
    EXPECT_EQ(factor.sizes(), (std::vector<int64_t>{A.size(0), found.rank}));
    EXPECT_EQ(factor.scalar_type(), torch::kFloat64);
    EXPECT_FALSE(factor.requires_grad());
  }
  EXPECT_LT(found.residual, tolerance);
  EXPECT_LT(relative_error(found, A), tolerance);
}

TEST(Decompose, FindsRandomTensorsAtTheirGenericRank) {
  const std::vector<std::pair<int64_t, int64_t>> ranks = {{1, 1}, {2, 3}, {3, 5}, {4, 8}, {5, 11}, {6, 15}};
  for (const auto& [n, rank] : ranks) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const auto A = random_tensor(n, seed);
      const auto found = decompose(A);
      EXPECT_TRUE(found.sound) << n << " " << seed;
      EXPECT_EQ(found.rank, rank) << n << " " << seed;
      EXPECT_LT(found.residual, 1e-11) << n << " " << seed;
      EXPECT_LT(found.condition, 1e3) << n << " " << seed;
      expect_honest(A, found);
    }
  }
}

TEST(Decompose, FindsRandomTensorsOfSevenAndEight) {
  for (const auto& [n, rank] : {std::pair<int64_t, int64_t>{7, 20}, {8, 26}}) {
    const auto A = random_tensor(n, 11);
    const auto found = decompose(A);
    EXPECT_TRUE(found.sound);
    EXPECT_EQ(found.rank, rank);
    EXPECT_LT(found.condition, 1e3);
    expect_honest(A, found);
  }
}

TEST(Decompose, IsSoundOrSaysSoAtEveryNamedAlgebra) {
  int sound = 0, tried = 0;
  for (const auto& name : algebra::names()) {
    const auto& algebra = algebra::get(name);
    if (algebra.n() > 6 && name != "octonion" && name != "clifford(3,0)") continue;
    SCOPED_TRACE(name);
    const auto found = decompose(table_of(algebra));
    expect_honest(table_of(algebra), found);
    ++tried;
    sound += found.sound;
  }
  EXPECT_GE(sound, tried - 1);
}

TEST(Decompose, ReportsAStructuredTensorsSingularJacobian) {
  for (const char* name :
       {"quaternion", "split_quaternion", "bicomplex", "dual_complex", "cyclic(4)", "mat2", "group_z2(2)"}) {
    EXPECT_TRUE(std::isinf(decompose(table_of(algebra::get(name))).condition)) << name;
  }
  EXPECT_LT(decompose(table_of(algebra::get("octonion"))).condition, 1e3);
  // The condition is the ratio of the Jacobian's singular values: 1 for n = 1, where J = (wv, uv, uw) has one
  // row.
  EXPECT_NEAR(decompose(torch::full({1, 1, 1}, -3.0, torch::kFloat64)).condition, 1, 1e-12);
}

TEST(Decompose, HandlesEqualAndZeroSlices) {
  for (int64_t n = 2; n <= 6; ++n) {
    for (uint64_t seed = 0; seed < 3; ++seed) {
      SCOPED_TRACE(std::to_string(n) + " " + std::to_string(seed));
      auto two_equal = random_tensor(n, seed);
      two_equal[1].copy_(two_equal[0]);
      auto all_equal = random_tensor(n, seed)[0].unsqueeze(0).expand({n, n, n});
      auto zero_slice = random_tensor(n, seed);
      zero_slice[n - 1].zero_();
      auto identity = torch::zeros({n, n, n}, torch::kFloat64);
      identity[0].copy_(torch::eye(n));
      for (const auto& A : {two_equal, all_equal, zero_slice, identity}) {
        const auto found = decompose(A);
        EXPECT_TRUE(found.sound);
        expect_honest(A, found);
      }
    }
  }
}

// All slices are one matrix with a singular value of 1e-3.
torch::Tensor small_direction() {
  auto matrix = torch::eye(4, torch::kFloat64);
  matrix[3][3] = 1e-3;
  return matrix.unsqueeze(0).expand({4, 4, 4}).contiguous();
}

TEST(Decompose, FindsASmallDirectionThatThePenaltyHides) {
  const auto A = small_direction();
  const auto found = decompose(A);
  EXPECT_TRUE(found.sound);
  expect_honest(A, found);
}

TEST(Decompose, RefusesWhatHasNoFactors) {
  const double infinity = std::numeric_limits<double>::infinity();
  auto with_nan = random_tensor(4, 0);
  with_nan[1][2][3] = NAN;
  auto with_infinity = random_tensor(4, 0);
  with_infinity[0][0][0] = infinity;
  for (const auto& A : {torch::zeros({4, 4, 4}), with_nan, with_infinity, random_tensor(16, 0)}) {
    const auto found = decompose(A);
    EXPECT_FALSE(found.sound);
    EXPECT_TRUE(found.factors.empty());
    EXPECT_EQ(found.residual, infinity);
    EXPECT_EQ(found.condition, infinity);
  }
}

TEST(Decompose, RefusesARankThatIsTooLow) {
  const auto found = decompose(table_of(algebra::get("quaternion")), {.rank = 7});
  EXPECT_FALSE(found.sound);
  EXPECT_TRUE(found.factors.empty());
  EXPECT_GT(found.residual, 1e-6);
  EXPECT_LT(found.residual, 1);
  EXPECT_EQ(found.rank, 7);
  for (const int64_t rank : {int64_t{-1}, int64_t{1} << 40})
    EXPECT_THROW(decompose(table_of(algebra::get("quaternion")), {.rank = rank}), c10::Error);
}

TEST(Decompose, TakesTheRankItIsGiven) {
  const auto A = table_of(algebra::get("quaternion"));
  const auto found = decompose(A, {.rank = 9});
  EXPECT_TRUE(found.sound);
  EXPECT_EQ(found.rank, 9);
  expect_honest(A, found);
}

TEST(Decompose, DoesNotDependOnTheScale) {
  const auto A = random_tensor(4, 5);
  const auto usual = decompose(A);
  for (double scale : {1e-200, 1e-30, 1e30, 1e200}) {
    const auto found = decompose(A * scale);
    EXPECT_TRUE(found.sound) << scale;
    EXPECT_NEAR(found.condition / usual.condition, 1, 1e-6) << scale;
    EXPECT_LT(((product_of(found) / scale - A).norm() / A.norm()).item<double>(), 1e-12) << scale;
  }
}

TEST(Decompose, BalancesTheFactors) {
  const auto found = decompose(small_direction());
  for (int other : {1, 2}) {
    EXPECT_TRUE(torch::allclose(found.factors[0].norm(2, 0), found.factors[other].norm(2, 0), 1e-10, 1e-14));
  }
}

TEST(Decompose, TakesAnyFloatingTensor) {
  const auto A = random_tensor(4, 2);
  for (auto dtype : {torch::kFloat32, torch::kBFloat16, torch::kHalf}) {
    const auto low = A.to(dtype);
    const auto found = decompose(low);
    EXPECT_TRUE(found.sound);
    expect_honest(low, found);
  }
  const auto leaf = A.clone().requires_grad_();
  expect_honest(leaf, decompose(leaf));
  const auto strided = A.permute({2, 0, 1});
  expect_honest(strided, decompose(strided));
  const c10::InferenceMode inference;
  expect_honest(A, decompose(A));
}

TEST(Decompose, IsDeterministicAndLeavesTheGlobalGeneratorAlone) {
  const auto A = random_tensor(5, 3);
  torch::manual_seed(1);
  const auto expected = torch::randn(8);
  torch::manual_seed(1);
  const auto first = decompose(A);
  EXPECT_TRUE(torch::equal(torch::randn(8), expected));
  const auto second = decompose(A);
  const auto other = decompose(A, {.seed = 7});
  for (int factor = 0; factor < 3; ++factor) {
    EXPECT_TRUE(torch::equal(first.factors[factor], second.factors[factor]));
    EXPECT_FALSE(torch::equal(first.factors[factor], other.factors[factor]));
  }
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto alone = decompose(A);
  at::set_num_threads(threads);  // from now on MKL divides by it, in parallel regions too
  const auto again = decompose(A);
  for (int factor = 0; factor < 3; ++factor) {
    EXPECT_TRUE(torch::equal(first.factors[factor], alone.factors[factor]));
    EXPECT_TRUE(torch::equal(first.factors[factor], again.factors[factor]));
  }
}

TEST(Decompose, RefusesBadArguments) {
  EXPECT_THROW(decompose(torch::Tensor()), c10::Error);
  EXPECT_THROW(decompose(torch::zeros({0, 0, 0})), c10::Error);
  EXPECT_THROW(decompose(torch::randn({4, 4})), c10::Error);
  EXPECT_THROW(decompose(torch::randn({4, 4, 3})), c10::Error);
  EXPECT_THROW(decompose(torch::ones({2, 2, 2}, torch::kLong)), c10::Error);
  EXPECT_THROW(decompose(random_tensor(2, 0), {.rank = -1}), c10::Error);
  EXPECT_THROW(decompose(random_tensor(2, 0), {.starts = 0}), c10::Error);
}

// The Jacobian has n^3 rows: of so many the condition is known without looking.
TEST(Decompose, FewFactorsOfALargeTensorHaveNoCondition) {
  torch::manual_seed(3);
  const int64_t n = 64;
  const at::Tensor u = torch::randn({n, 1, 1}, torch::kDouble), v = torch::randn({1, n, 1}, torch::kDouble),
                   w = torch::randn({1, 1, n}, torch::kDouble);
  const auto found = ops::decompose(u * v * w, {.rank = 1});
  EXPECT_TRUE(found.sound);
  EXPECT_TRUE(std::isinf(found.condition));
}

}  // namespace
}  // namespace quatrain::ops
