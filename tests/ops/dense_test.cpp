// Dense products of matrices as they lie in memory, by ATen's library or by the engine, against float64.

#include <gtest/gtest.h>
#include <torch/types.h>

#include <utility>

#include "ops/engine/dense.h"
#include "ops/reference.h"

namespace quatrain {
namespace {

using ops::engine::Matrix;
using test::relative_error;

/// Rows x columns inside a wider tensor, as it lies or transposed.
struct Operand {
  at::Tensor values;
  Matrix matrix;
  Operand(int64_t rows, int64_t columns, bool transposed) {
    const at::Tensor stored = torch::randn({transposed ? columns : rows, (transposed ? rows : columns) + 3});
    values = stored.narrow(1, 0, transposed ? rows : columns);
    if (transposed) values = values.t();
    matrix = {stored.const_data_ptr<float>(), stored.size(1), transposed};
  }
};

TEST(Engine, MultipliesDenseMatrices) {
  torch::manual_seed(1);
  struct Sizes {
    int64_t M, N, K;
  };
  for (const auto& [M, N, K] : {Sizes{1, 1, 1}, Sizes{16, 16, 16}, Sizes{33, 65, 17}, Sizes{70, 130, 700},
                                Sizes{257, 8, 64}, Sizes{5, 300, 40}})
    for (const bool left : {false, true})
      for (const bool right : {false, true})
        for (const auto& [accumulate, biased] :
             {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
          SCOPED_TRACE(testing::Message() << M << " x " << N << " x " << K << ", transposed " << left << right
                                          << ", accumulate " << accumulate << ", bias " << biased);
          const Operand a(M, K, left), b(K, N, right);
          const at::Tensor before = torch::randn({M, N + 5});
          at::Tensor expected = a.values.to(torch::kDouble).mm(b.values.to(torch::kDouble));
          const at::Tensor bias = torch::randn({N});
          if (biased) expected += bias;
          if (accumulate) expected += before.narrow(1, 0, N);
          for (const auto product : {&ops::engine::multiply, &ops::engine::multiply_in_engine}) {
            const at::Tensor c = before.clone();
            product(M, N, K, a.matrix, b.matrix, biased ? bias.const_data_ptr<float>() : nullptr, accumulate,
                    c.mutable_data_ptr<float>(), N + 5);
            EXPECT_LT(relative_error(c.narrow(1, 0, N), expected), 1e-6);
            EXPECT_TRUE(c.narrow(1, N, 5).equal(before.narrow(1, N, 5)));  // what lies beside it
          }
        }
}

}  // namespace
}  // namespace quatrain
