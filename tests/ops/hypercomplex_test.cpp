#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "ops/reference.h"

namespace quatrain {
namespace {

using test::relative_error;

TEST(Hypercomplex, ProductFollowsTheTable) {
  torch::manual_seed(1);
  for (const std::string& name : algebra::names()) {
    const auto& algebra = algebra::get(name);
    const int n = algebra.n();
    const at::Tensor a = torch::randn({3, 1, n * 2}, torch::kDouble),
                     b = torch::randn({2, n * 2}, torch::kDouble);
    const at::Tensor got = ops::hamilton_product(a, b, name);
    const at::Tensor expected =
        torch::einsum("iab,xyiq,xybq->xyaq",
                      {test::table_of(name), a.expand({3, 2, n * 2}).reshape({3, 2, n, 2}),
                       b.expand({3, 2, n * 2}).reshape({3, 2, n, 2})})
            .reshape({3, 2, n * 2});
    EXPECT_LT(relative_error(got, expected), 1e-13) << name;
  }
}

TEST(Hypercomplex, QuaternionProductByHand) {
  const at::Tensor i = torch::tensor({0., 1., 0., 0.}), j = torch::tensor({0., 0., 1., 0.});
  EXPECT_TRUE(torch::equal(ops::hamilton_product(i, j, "quaternion"), torch::tensor({0., 0., 0., 1.})));
  EXPECT_TRUE(torch::equal(ops::hamilton_product(j, i, "quaternion"), torch::tensor({0., 0., 0., -1.})));
}

TEST(Hypercomplex, NormIsMultiplicativeExactlyWhereTheAlgebraSaysSo) {
  torch::manual_seed(2);
  for (const std::string name :
       {"complex", "quaternion", "octonion", "sedenion", "split_quaternion", "tessarine"}) {
    const auto& algebra = algebra::get(name);
    const at::Tensor a = torch::randn({50, algebra.n()}, torch::kDouble),
                     b = torch::randn({50, algebra.n()}, torch::kDouble);
    const auto norm = [&](const at::Tensor& t) { return ops::hypercomplex_norm(t, name); };
    const double gap = relative_error(norm(ops::hamilton_product(a, b, name)), norm(a) * norm(b));
    EXPECT_EQ(gap < 1e-12, algebra.properties().norm_multiplicative) << name << " " << gap;
  }
}

TEST(Hypercomplex, ConjugateTimesSelfIsTheSquaredNorm) {
  torch::manual_seed(2);
  for (const std::string name : {"complex", "quaternion", "octonion", "sedenion"}) {
    const int64_t n = algebra::get(name).n();
    const at::Tensor a = torch::randn({5, n}, torch::kDouble);
    const at::Tensor product = ops::hamilton_product(ops::hypercomplex_conjugate(a, name), a, name);
    EXPECT_LT(relative_error(product.select(1, 0), ops::hypercomplex_norm(a, name).squeeze(1).pow(2)), 1e-12)
        << name;
    EXPECT_LT(product.slice(1, 1).abs().max().item<double>(), 1e-12) << name;
  }
}

TEST(Hypercomplex, ErrorsNameTheRule) {
  const auto message = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "no error";
  };
  EXPECT_THAT(message([] { ops::hypercomplex_norm(torch::ones({6}), "quaternion"); }),
              testing::HasSubstr("divisible by n = 4"));
  EXPECT_THAT(message([] { ops::hamilton_product(torch::ones({8}), torch::ones({4}), "quaternion"); }),
              testing::HasSubstr("last axes must be equal"));
  EXPECT_THAT(message([] { ops::hypercomplex_conjugate(torch::ones({4}), "quaternoin"); }),
              testing::HasSubstr("quaternion"));
}

}  // namespace
}  // namespace quatrain
