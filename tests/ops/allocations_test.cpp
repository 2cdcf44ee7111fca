// A map that is applied again takes no memory of its own: every call of operator new in this program is
// counted.

#include <ATen/native/CPUBlas.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>

#include "counted_new.h"
#include "ops/engine/products.h"
#include "ops/map/bilinear_map.h"
#include "quatrain/ops.h"

namespace quatrain {
namespace {

using ops::BilinearMap;
using ops::Way;
using test::allocations;

// What ATen's small product takes in each call.
int64_t of_a_product() {
  const at::Tensor a = torch::randn({8, 8}), c = torch::empty({8, 8});
  const auto multiply = [&] {
    at::native::cpublas::brgemm(8, 8, 8, 8, 8, 8, false, a.const_data_ptr<float>(), a.const_data_ptr<float>(),
                                c.mutable_data_ptr<float>());
  };
  multiply();
  const int64_t before = allocations;
  multiply();
  return allocations - before;
}

TEST(Allocations, ApplyingAMapTakesNoMemory) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const int64_t each = of_a_product();
  constexpr int64_t kNarrow = 32;
  for (const int64_t width : {kNarrow, int64_t{256}})
    for (const std::string algebra : {"quaternion", "octonion", "complex"})
      for (const Way way : {Way::factored, Way::mixed})
        for (const int64_t rows : {1, 3, 8, 32}) {
          const int64_t n = algebra::get(algebra).n();
          const at::Tensor S = torch::randn({n, width, width}), x = torch::randn({rows, n * width});
          at::Tensor y = torch::zeros({rows, n * width}), dx = torch::zeros_like(x),
                     dS = torch::zeros_like(S);
          ops::Call call = ops::make_call({algebra, {}, {}});
          call.way = way;
          BilinearMap map(S, call, rows, at::kFloat);
          map.prepare();
          const auto X = BilinearMap::blocks_of_rows(x, width), Y = BilinearMap::blocks_of_rows(y, width),
                     dX = BilinearMap::blocks_of_rows(dx, width), dSs = BilinearMap::blocks_of(dS);
          const ops::engine::Piece piece{X, width};
          const auto forward = [&] { map.apply(rows, {&piece, 1}, Y, {.accumulate = true}); };
          const auto back = [&] {
            if (way != Way::factored) return;
            map.apply_transposed(rows, Y, dX);
            map.weight_gradient(rows, Y, {&piece, 1}, dSs);
          };
          const auto taken = [](const auto& work) {
            work();
            const int64_t before = allocations;
            for (int i = 0; i < 5; ++i) work();
            return allocations - before;
          };
          // ATen's products take some; our own, of prepared weights, take none. In narrow layers a pass has
          // one product for each of the R.
          const bool own = way != Way::factored || ops::engine::takes_own_products();
          const int64_t of_pass = 5 * map.rank() * each, of_forward = taken(forward), of_back = taken(back);
          SCOPED_TRACE(algebra + ", " + std::string(ops::name(way)) + ", width " + std::to_string(width) +
                       ", rows " + std::to_string(rows));
          if (width == kNarrow) {
            EXPECT_TRUE(of_forward == 0 || (!own && of_forward == of_pass)) << of_forward;
            EXPECT_EQ(of_back, way == Way::factored ? 2 * of_pass : 0);
          } else {
            EXPECT_TRUE(of_forward == 0 || !own) << of_forward;
            EXPECT_EQ(of_back % std::max<int64_t>(1, of_pass), 0) << of_back;
          }
        }
  at::set_num_threads(threads);
}

}  // namespace
}  // namespace quatrain
