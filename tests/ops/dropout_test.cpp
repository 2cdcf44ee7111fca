// hypercomplex_dropout by kernels: what it drops, and that the way back drops the same.

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "quatrain/layer_ops.h"

namespace quatrain {
namespace {

using torch::indexing::Slice;

at::Tensor dropped(const at::Tensor& x, double p, int64_t n = 1, bool per_unit = false, uint64_t seed = 1) {
  torch::manual_seed(seed);
  return ops::hypercomplex_dropout(x, p, true, n, per_unit);
}

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kDouble})
    for (const double p : {0.1, 0.5, 0.9}) {
      const at::Tensor x = torch::full({301, 997}, 3, type), y = dropped(x, p);
      EXPECT_EQ(y.scalar_type(), type);
      const at::Tensor zero = y.eq(0).to(torch::kDouble);
      // Five standard deviations, of all, of each row and of each column.
      const auto bound = [p](double count) { return 5 * std::sqrt(p * (1 - p) / count); };
      EXPECT_NEAR(zero.mean().item<double>(), p, bound(301. * 997));
      EXPECT_LT((zero.mean(1) - p).abs().max().item<double>(), bound(997));
      EXPECT_LT((zero.mean(0) - p).abs().max().item<double>(), bound(301));
      const at::Tensor kept = torch::full({}, 3, type) * (1 / (1 - p));
      EXPECT_TRUE(torch::where(y.eq(0), y, y - kept)
                      .abs()
                      .le(kept.to(torch::kDouble) * (type == torch::kBFloat16 ? 4e-3 : 1e-6))
                      .all()
                      .item<bool>());
    }
  EXPECT_TRUE(torch::equal(dropped(torch::ones({5, 7}), 1), torch::zeros({5, 7})));
  EXPECT_TRUE(torch::equal(dropped(torch::ones({5, 7}), 0), torch::ones({5, 7})));
  EXPECT_EQ(dropped(torch::ones({0, 8}), 0.5, 4, true).sizes(), (std::vector<int64_t>{0, 8}));
  EXPECT_EQ(dropped(torch::ones({3, 0}), 0.5, 4, true).sizes(), (std::vector<int64_t>{3, 0}));
  EXPECT_EQ(dropped(torch::ones({}), 0.5).dim(), 0);
}

TEST(Dropout, IsDrawnAnewAndFollowsTheSeed) {
  const at::Tensor x = torch::ones({40, 50}), y = dropped(x, 0.5);
  EXPECT_FALSE(torch::equal(ops::hypercomplex_dropout(x, 0.5, true), y));
  EXPECT_FALSE(torch::equal(dropped(x, 0.5, 1, false, 2), y));
  EXPECT_TRUE(torch::equal(dropped(x, 0.5), y));
}

TEST(Dropout, SharesADrawAmongTheComponents) {
  for (const int64_t m : {1, 3, 16, 37})
    for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kDouble}) {
      const at::Tensor y = dropped(torch::ones({200, 4 * m}, type), 0.3, 4, true).view({200, 4, m});
      for (int c = 1; c < 4; ++c) EXPECT_TRUE(torch::equal(y.select(1, 0), y.select(1, c)));
      EXPECT_NEAR(y.eq(0).to(torch::kDouble).mean().item<double>(), 0.3, 5 * std::sqrt(0.21 / (200. * m)));
    }
}

// A dropped value that is no number leaves no trace, in either direction.
TEST(Dropout, DropsWhatIsNoNumber) {
  const at::Tensor x = torch::full({64, 64}, std::numeric_limits<float>::quiet_NaN()),
                   kept = dropped(torch::ones_like(x), 0.5).ne(0);
  EXPECT_TRUE(torch::equal(dropped(x, 0.5).isnan(), kept));
}

TEST(Dropout, GradientsOfAnyOrderDropTheSame) {
  struct DropoutCase {
    int64_t n;
    bool per_unit;
  };
  for (const auto& [n, per_unit] : {DropoutCase{1, false}, {4, false}, {4, true}})
    for (const auto type : {torch::kFloat, torch::kBFloat16}) {
      const at::Tensor x = torch::randn({33, 40}, type).requires_grad_();
      const at::Tensor mask = dropped(torch::ones({33, 40}, type), 0.5, n, per_unit);
      const at::Tensor y = dropped(x, 0.5, n, per_unit), grad = torch::randn_like(y).requires_grad_();
      EXPECT_TRUE(torch::equal(y, x * mask));
      // A gradient may lie in memory in another order.
      const auto first = torch::autograd::grad({y}, {x}, {grad.t().contiguous().t()}, true, true)[0];
      EXPECT_TRUE(torch::equal(first, grad * mask));
      EXPECT_TRUE(torch::equal(torch::autograd::grad({first}, {grad}, {torch::ones_like(first)})[0], mask));
    }
}

TEST(Dropout, TakesAnyLayout) {
  const at::Tensor x = torch::randn({2, 8, 5, 7});
  for (const at::Tensor& view :
       {x, x.contiguous(at::MemoryFormat::ChannelsLast), x.transpose(0, 1),
        x.index({Slice(), Slice(1, 8, 3)}), x.select(1, 0).unsqueeze(1).expand({2, 3, 5, 7})}) {
    const at::Tensor leaf = view.detach().requires_grad_();
    const at::Tensor y = dropped(leaf, 0.5), grad = torch::randn(y.sizes());
    const at::Tensor kept = y.ne(0);
    EXPECT_TRUE(torch::equal(y, torch::where(kept, 2 * view, 0)));
    EXPECT_TRUE(torch::equal(torch::autograd::grad({y}, {leaf}, {grad})[0], torch::where(kept, 2 * grad, 0)));
  }
  EXPECT_TRUE(dropped(x.contiguous(at::MemoryFormat::ChannelsLast), 0.5)
                  .is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST(Dropout, HasTheSameBitsOnAnyNumberOfThreads) {
  const int before = at::get_num_threads();
  const at::Tensor x = torch::randn({301, 997});
  for (const bool per_unit : {false, true}) {
    const at::Tensor given = per_unit ? x.slice(1, 0, 996).contiguous() : x;
    at::set_num_threads(1);
    const at::Tensor one = dropped(given, 0.3, 4, per_unit);
    for (const int threads : {2, 3, 8}) {
      at::set_num_threads(threads);
      EXPECT_TRUE(torch::equal(dropped(given, 0.3, 4, per_unit), one));
    }
  }
  at::set_num_threads(before);
}

}  // namespace
}  // namespace quatrain
