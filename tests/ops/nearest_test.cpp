#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "ops/reference.h"
#include "quatrain/algebra.h"
#include "quatrain/ops.h"

namespace quatrain::ops {
namespace {

using test::expanded;
using test::relative_error;
using test::table_of;
using ::testing::HasSubstr;

// The blocks of H as rows, by plain loops: (a, b) -> the block at row a and column b.
torch::Tensor rows_of_blocks(const torch::Tensor& H, int64_t n) {
  std::vector<torch::Tensor> rows;
  for (const auto& band : H.chunk(n, 0))
    for (const auto& block : band.chunk(n, 1)) rows.push_back(block.flatten());
  return torch::stack(rows);
}

double distance(const torch::Tensor& H, const torch::Tensor& A, const torch::Tensor& S) {
  return (H - expanded(A, S)).norm().item<double>();
}

std::vector<std::string> fixed_algebras() {
  std::vector<std::string> names{"real"};
  for (const auto& name : algebra::names())
    if (algebra::get(name).n() <= 8) names.push_back(name);
  return names;
}

class NearestTest : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(3); }
};

// A matrix that is hypercomplex comes back, and once projected nothing changes again.
TEST_F(NearestTest, ProjectsOntoEveryFixedAlgebra) {
  for (const auto& name : fixed_algebras()) {
    SCOPED_TRACE(name);
    const auto table = table_of(name);
    const int64_t n = table.size(0);
    const auto exact = expanded(table, torch::randn({n, 3, 2}, torch::kDouble));
    const Nearest same = nearest(exact, name);
    EXPECT_LT(same.error, 1e-12);
    EXPECT_LT(relative_error(expanded(table, same.S), exact), 1e-12);
    EXPECT_TRUE(torch::equal(same.A, table));

    const auto H = torch::randn({3 * n, 2 * n}, torch::kDouble);
    const Nearest once = nearest(H, name), twice = nearest(expanded(table, once.S), name);
    EXPECT_LT(twice.error, 1e-12);
    EXPECT_LT(relative_error(twice.S, once.S), 1e-12);
    EXPECT_NEAR(once.error, distance(H, table, once.S) / H.norm().item<double>(), 1e-12);
  }
}

// The same as a dense least-squares solution over all entries of H, and as near as nothing else around it.
TEST_F(NearestTest, TheProjectionIsOptimal) {
  for (const auto& name : fixed_algebras()) {
    SCOPED_TRACE(name);
    const auto table = table_of(name);
    const int64_t n = table.size(0);
    const auto H = torch::randn({2 * n, 3 * n}, torch::kDouble);
    const Nearest found = nearest(H, name);
    const double best = distance(H, table, found.S);
    // A column for each number of S: the matrix that it stands for.
    std::vector<torch::Tensor> columns;
    for (int64_t entry = 0; entry < found.S.numel(); ++entry) {
      auto unit = torch::zeros_like(found.S);
      unit.view(-1)[entry] = 1;
      columns.push_back(expanded(table, unit).flatten());
    }
    const auto design = torch::stack(columns, 1);
    const auto solution = at::linalg_pinv(design).matmul(H.flatten());
    EXPECT_LT(relative_error(found.S.flatten(), solution), 1e-10);
    for (int i = 0; i < 20; ++i)
      EXPECT_GE(distance(H, table, found.S + 1e-3 * torch::randn_like(found.S)), best - 1e-12);
  }
}

// Tables of no use as algebras: equal slices, a zero slice. Of all equally near weights the smallest come
// out.
TEST_F(NearestTest, DependentSlicesShareTheWeights) {
  auto table = torch::randn({3, 3, 3}, torch::kDouble);
  table[1].copy_(table[0]);
  table[2].zero_();
  const auto values = table.contiguous();
  algebra::add("nearest_test_dependent", 3,
               {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()});
  const auto H = torch::randn({6, 9}, torch::kDouble);
  const Nearest found = nearest(H, "nearest_test_dependent");
  EXPECT_LT(relative_error(found.S[0], found.S[1]), 1e-12);
  EXPECT_EQ(found.S[2].norm().item<double>(), 0);
  const auto expected =
      (table[0].reshape({1, 9}).matmul(rows_of_blocks(H, 3)) / table[0].square().sum()).view({2, 3});
  EXPECT_LT(relative_error(found.S[0] + found.S[1], expected), 1e-12);
}

// The error is what the singular values beyond the n-th leave: no sum of n Kronecker products is nearer.
TEST_F(NearestTest, LearnedAlgebrasLeaveTheTailOfTheSingularValues) {
  for (const int64_t n : {2, 3, 4, 8}) {
    SCOPED_TRACE(n);
    const auto H = torch::randn({5 * n, 7 * n}, torch::kDouble);
    const auto sigma = at::linalg_svdvals(rows_of_blocks(H, n));
    const double tail = (sigma.slice(0, n).norm() / sigma.norm()).item<double>();
    for (const std::string head : {"phm", "wkp"}) {
      const Nearest found = nearest(H, head + "(" + std::to_string(n) + ")");
      EXPECT_GT(tail, 0.1);
      EXPECT_NEAR(found.error, tail, 1e-12);
      EXPECT_NEAR(distance(H, found.A, found.S) / H.norm().item<double>(), tail, 1e-12);
      for (int64_t i = 0; i < n; ++i)
        EXPECT_NEAR((found.A[i].norm() / found.S[i].norm()).item<double>(), 1, 1e-10);
    }
  }
}

TEST_F(NearestTest, WhereTrainingWouldStartHasNoSay) {
  const auto H = torch::randn({8, 12}, torch::kDouble);
  const Nearest expected = nearest(H, "phm(4)");
  for (const char* algebra : {"phm(quaternion)", "phm(identity(4))", "wkp(quaternion)"}) {
    const Nearest found = nearest(H, algebra);
    EXPECT_TRUE(torch::equal(found.S, expected.S)) << algebra;
    EXPECT_TRUE(torch::equal(found.A, expected.A)) << algebra;
  }
}

TEST_F(NearestTest, LearnedAlgebrasFindWhatIsASumOfKroneckerProducts) {
  for (const char* name : {"quaternion", "octonion", "dual", "clifford(2,1)"}) {
    const auto table = table_of(name);
    const int64_t n = table.size(0);
    const auto H = expanded(table, torch::randn({n, 4, 5}, torch::kDouble));
    const Nearest found = nearest(H, "phm(" + std::to_string(n) + ")");
    EXPECT_LT(found.error, 1e-12) << name;
    EXPECT_LT(distance(H, found.A, found.S), 1e-11) << name;
  }
}

// A matrix of fewer terms than n: finite, exact, and each term can still be trained, as its A is not zero.
TEST_F(NearestTest, FewerTermsLeaveTheOthersReady) {
  const auto a = torch::randn({4, 4}, torch::kDouble), s = torch::randn({6, 5}, torch::kDouble);
  for (const auto dtype : {torch::kDouble, torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    SCOPED_TRACE(c10::toString(dtype));
    const auto one_term = at::kron(a, s).to(dtype);
    const auto zero = torch::zeros({8, 8}, dtype), single = torch::randn({4, 4}, torch::kDouble).to(dtype);
    for (const auto& H : {one_term, zero, single}) {
      const Nearest found = nearest(H, "phm(4)");
      EXPECT_TRUE(found.S.isfinite().all().item<bool>());
      EXPECT_TRUE(found.A.isfinite().all().item<bool>());
      EXPECT_LT(found.error, dtype == torch::kDouble ? 1e-12 : dtype == torch::kFloat ? 1e-6 : 1e-2);
      for (int64_t i = 0; i < 4; ++i) EXPECT_GT(found.A[i].norm().item<double>(), 0.1);
      for (int64_t i = 1; i < 4; ++i) EXPECT_EQ(found.S[i].norm().item<double>(), 0);
    }
  }
}

TEST_F(NearestTest, TakesEveryTypeAndStride) {
  const auto H = torch::randn({16, 8}, torch::kDouble);
  for (const std::string algebra : {"quaternion", "phm(4)"}) {
    const Nearest expected = nearest(H, algebra);
    for (const auto& [dtype, tolerance] :
         {std::pair{torch::kFloat, 1e-6}, {torch::kBFloat16, 2e-2}, {torch::kHalf, 2e-3}}) {
      const auto low = H.to(dtype);
      const Nearest found = nearest(low, algebra);
      EXPECT_EQ(found.S.scalar_type(), dtype);
      EXPECT_EQ(found.A.scalar_type(), dtype);
      EXPECT_NEAR(found.error, expected.error, tolerance);
      EXPECT_NEAR(found.error, distance(low.to(torch::kDouble), found.A, found.S) / H.norm().item<double>(),
                  tolerance);
    }
    const Nearest strided = nearest(H.t().contiguous().t(), algebra);
    EXPECT_TRUE(torch::equal(strided.S, expected.S));
    EXPECT_TRUE(strided.S.is_contiguous() && strided.A.is_contiguous());
  }
}

TEST_F(NearestTest, RecordsNoGradient) {
  const auto H = torch::randn({8, 8}).requires_grad_();
  const Nearest found = nearest(H, "phm(4)");
  EXPECT_FALSE(found.S.requires_grad());
  EXPECT_FALSE(found.A.requires_grad());
  // The table that comes out is the caller's own.
  nearest(H.to(torch::kDouble), "quaternion").A.zero_();
  EXPECT_LT(nearest(expanded(table_of("quaternion"), torch::randn({4, 2, 2})), "quaternion").error, 1e-12);
}

TEST_F(NearestTest, EmptyMatricesAreNearToEmptyWeights) {
  for (const std::string algebra : {"quaternion", "phm(4)"}) {
    const Nearest found = nearest(torch::empty({0, 8}), algebra);
    EXPECT_EQ(found.S.sizes(), (std::vector<int64_t>{4, 0, 2}));
    EXPECT_EQ(found.A.sizes(), (std::vector<int64_t>{4, 4, 4}));
    EXPECT_EQ(found.error, 0);
  }
}

TEST_F(NearestTest, BadInputGetsASentence) {
  const auto refusal = [](const torch::Tensor& H, const char* algebra) {
    try {
      nearest(H, algebra);
    } catch (const c10::Error& error) {
      return std::string(error.what_without_backtrace());
    }
    return std::string("not refused");
  };
  EXPECT_THAT(refusal(torch::zeros({8, 6}), "quaternion"),
              HasSubstr("must be divisible by n = 4 (quaternion), got [8, 6]"));
  EXPECT_THAT(refusal(torch::zeros({8, 8}), "phm(4, trained_rank=6)"), HasSubstr("trained factors"));
  EXPECT_THAT(refusal(torch::zeros({8}), "quaternion"),
              HasSubstr("nearest: H must be a matrix (out, in), got [8]"));
  EXPECT_THAT(refusal(torch::zeros({8, 8}), "quaternoin"), HasSubstr("quaternion"));
  EXPECT_THAT(refusal(torch::zeros({8, 8}, torch::kLong), "complex"), HasSubstr("floating point"));
  EXPECT_THAT(refusal(torch::full({8, 8}, std::numeric_limits<double>::quiet_NaN()), "phm(2)"),
              HasSubstr("must be finite"));
}

}  // namespace
}  // namespace quatrain::ops
