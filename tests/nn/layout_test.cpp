#include "quatrain/nn/layout.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "nn/reference.h"

namespace quatrain {
namespace {

TEST(NnLayout, ConvertsBothWays) {
  const at::Tensor interleaved = torch::tensor({10, 20, 30, 40, 11, 21, 31, 41});  // r i j k r i j k
  const at::Tensor concatenated = torch::tensor({10, 11, 20, 21, 30, 31, 40, 41});
  EXPECT_TRUE(torch::equal(nn::to_concatenated(interleaved, 4), concatenated));
  EXPECT_TRUE(torch::equal(nn::to_interleaved(concatenated, 4), interleaved));
  const at::Tensor x = torch::randn({2, 3, 15});
  EXPECT_TRUE(torch::equal(nn::to_interleaved(nn::to_concatenated(x, 3), 3), x));
  EXPECT_THROW(nn::to_concatenated(x, 4), c10::Error);
}

// PHM (A.1), (A.2) written out: H = [s(B_1); ..; s(B_n)], s(B_b) = [psi(B_b T_1); ..; psi(B_b T_{d/n})],
// psi(X) the rows of X one after the other.
TEST(NnLayout, PhmsAppendixIsTheSameMap) {
  torch::manual_seed(0);
  for (const char* algebra : {"phm(1)", "phm(2)", "phm(3)", "phm(quaternion)"}) {
    nn::Linear layer(nn::LinearOptions(12, 24).algebra(algebra));
    const at::Tensor A = layer->A.defined() ? layer->A.detach() : torch::ones({1, 1, 1});
    const int64_t n = A.size(0);
    const auto [B, T] = nn::to_phm_blocks(A, layer->S.detach());
    EXPECT_EQ(B.sizes(), (at::IntArrayRef{n, n, n}));
    EXPECT_EQ(T.sizes(), (at::IntArrayRef{12 / n, n, 24 / n}));
    std::vector<at::Tensor> columns;
    for (int64_t b = 0; b < n; ++b)
      for (int64_t q = 0; q < 12 / n; ++q) columns.push_back(torch::matmul(B[b], T[q]).reshape({24}));
    EXPECT_LT(test::relative_error(torch::stack(columns, 1), layer->matrix()), 1e-6) << algebra;
    const auto [again, S] = nn::from_phm_blocks(B, T);
    EXPECT_TRUE(torch::equal(again, A));
    EXPECT_TRUE(torch::equal(S, layer->S));
  }
  // (A.3): B_1 .. B_4 of the Hamilton product.
  const auto [B, T] = nn::to_phm_blocks(test::table_of("quaternion"), torch::randn({4, 1, 1}));
  const auto matrix = [](std::vector<double> values) {
    return torch::tensor(values, torch::kDouble).view({4, 4});
  };
  EXPECT_TRUE(torch::equal(B[0], torch::eye(4, torch::kDouble)));
  EXPECT_TRUE(torch::equal(B[1], matrix({0, -1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, -1, 0})));
  EXPECT_TRUE(torch::equal(B[2], matrix({0, 0, -1, 0, 0, 0, 0, -1, 1, 0, 0, 0, 0, 1, 0, 0})));
  EXPECT_TRUE(torch::equal(B[3], matrix({0, 0, 0, -1, 0, 0, 1, 0, 0, -1, 0, 0, 1, 0, 0, 0})));
  EXPECT_THROW(nn::to_phm_blocks(torch::ones({2, 2, 2}), torch::ones({3, 1, 1})), c10::Error);
  EXPECT_THROW(nn::from_phm_blocks(torch::ones({2, 2, 2}), torch::ones({1, 3, 1})), c10::Error);
}

}  // namespace
}  // namespace quatrain
