// hypercomplex_matching against the table, by kernels and composed.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include "ops/reference.h"
#include "quatrain/pair_ops.h"

namespace quatrain {
namespace {

using test::relative_error;

at::Tensor by_the_table(const at::Tensor& a, const at::Tensor& b, const std::string& algebra, int64_t n) {
  const at::Tensor A = a.unflatten(-1, {n, -1}), B = b.unflatten(-1, {n, -1});
  const at::Tensor product =
      algebra == "real" ? A * B
                        : torch::einsum("icj,...im,...jm->...cm", {test::table_of(algebra).to(a), A, B});
  return torch::cat({A, B, product, A - B}, -1).flatten(-2);
}

struct MatchingCase {
  const char* algebra;
  int64_t n;
};
constexpr MatchingCase kMatchings[] = {
    {"real", 1}, {"real", 5}, {"complex", 2}, {"quaternion", 4}, {"split_quaternion", 4}, {"octonion", 8}};

TEST(Matching, FollowsTheTable) {
  torch::manual_seed(1);
  for (const auto& [algebra, n] : kMatchings)
    for (const int64_t m : {1, 3, 16, 37})
      for (const auto type : {torch::kFloat, torch::kDouble}) {
        // Of a view with gaps, of more rows than a block has.
        const at::Tensor a = torch::randn({3, 7, 2 * n * m}, type).slice(-1, 0, n * m),
                         b = torch::randn({3, 7, n * m}, type);
        EXPECT_LT(relative_error(ops::hypercomplex_matching(a, b, algebra, n),
                                 by_the_table(a.to(torch::kDouble), b.to(torch::kDouble), algebra, n)),
                  type == torch::kFloat ? 1e-6 : 1e-14)
            << algebra << " " << m;
      }
  EXPECT_EQ(ops::hypercomplex_matching(torch::randn({0, 8}), torch::randn({0, 8}), "quaternion", 4).sizes(),
            (std::vector<int64_t>{0, 32}));
}

TEST(Matching, HasDerivatives) {
  torch::manual_seed(2);
  for (const auto& [algebra, n] : kMatchings)
    for (const auto type : {torch::kFloat, torch::kDouble}) {
      const auto leaf = [&, n = n] { return torch::randn({5, 3 * n}, type).requires_grad_(); };
      const at::Tensor a = leaf(), b = leaf(), grad = torch::randn({5, 12 * n}, type).requires_grad_();
      const double near = type == torch::kFloat ? 1e-5 : 1e-13;
      const auto gradients = [&](const at::Tensor& y) {
        const auto first = torch::autograd::grad({y}, {a, b}, {grad}, true, true);
        auto all = torch::autograd::grad({first[0].square().sum() + first[1].pow(3).sum()}, {a, b, grad});
        all.insert(all.end(), first.begin(), first.end());
        return all;
      };
      const auto got = gradients(ops::hypercomplex_matching(a, b, algebra, n)),
                 expected = gradients(by_the_table(a, b, algebra, n));
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_LT(relative_error(got[i], expected[i]), near) << algebra << i;
      // Without a second derivative the kernels make the first.
      const auto once =
          torch::autograd::grad({ops::hypercomplex_matching(a, b, algebra, n)}, {a, b}, {grad.detach()});
      for (size_t i = 0; i < 2; ++i)
        EXPECT_LT(relative_error(once[i], expected[3 + i]), near) << algebra << i;
    }
}

TEST(Matching, ErrorsNameTheRule) {
  const at::Tensor a = torch::randn({2, 8});
  EXPECT_THROW(ops::hypercomplex_matching(a, torch::randn({1, 8}), "quaternion", 4), c10::ValueError);
  EXPECT_THROW(ops::hypercomplex_matching(a, a, "quaternion", 2), c10::ValueError);
  EXPECT_THROW(ops::hypercomplex_matching(a, a, "real", 3), c10::ValueError);
  EXPECT_THROW(ops::hypercomplex_matching(a, a, "real", 0), c10::ValueError);
  EXPECT_THROW(ops::hypercomplex_matching(a, a, "quaternoin", 4), c10::ValueError);
  EXPECT_THROW(ops::hypercomplex_matching(torch::randn({0}), torch::randn({0}), "real", int64_t{1} << 40),
               c10::ValueError);
}

}  // namespace
}  // namespace quatrain
