// Component-wise attention without a gradient, which a CPU computes tile by tile, against the definition in
// float64; and with one, composed of ATen calls.

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <cmath>
#include <limits>

#include "ops/reference.h"
#include "quatrain/layer_ops.h"

namespace quatrain {
namespace {

using test::relative_error;
using test::table_of;

/// (B, L, n h m) in float64.
at::Tensor defined(const at::Tensor& A, const at::Tensor& Q, const at::Tensor& K, const at::Tensor& V,
                   const at::Tensor& padding) {
  const auto wide = [](const at::Tensor& t) { return t.to(torch::kDouble); };
  at::Tensor scores = torch::einsum("icj,blihm,bsjhm->bchls", {A, wide(Q), wide(K)}) /
                      std::sqrt(static_cast<double>(Q.size(2) * Q.size(4)));
  if (padding.defined())
    scores = scores.masked_fill(padding.view({Q.size(0), 1, 1, 1, K.size(1)}),
                                -std::numeric_limits<double>::infinity());
  const at::Tensor weights = torch::softmax(scores, -1).nan_to_num(0);  // a text without keys
  return torch::einsum("bchls,bschm->blchm", {weights, wide(V)}).flatten(2);
}

void check(const std::string& name, const at::Tensor& Q, const at::Tensor& K, const at::Tensor& V,
           const at::Tensor& padding = {}) {
  const at::Tensor expected = defined(table_of(name), Q, K, V, padding);
  const at::Tensor recorded = ops::hypercomplex_attention(Q.detach().requires_grad_(), K, V, name, padding);
  EXPECT_TRUE(recorded.requires_grad());
  const at::Tensor got = ops::hypercomplex_attention(Q, K, V, name, padding);
  EXPECT_FALSE(got.requires_grad());
  ASSERT_EQ(got.sizes(), expected.sizes());
  EXPECT_TRUE(got.is_contiguous());
  // Sums over all keys at once: over 1500 of them somewhat more rounding than in blocks.
  const double allowed = 2 * relative_error(recorded, expected) + 1e-6;
  EXPECT_LE(relative_error(got, expected), allowed);
  // Inference of a model is the same under each guard.
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(
      torch::equal(ops::hypercomplex_attention(Q.detach().requires_grad_(), K, V, name, padding), got));
}

struct Sizes {
  const char* algebra;
  int64_t texts, queries, keys, heads, m;
};

class Attention : public testing::Test {
 protected:
  ~Attention() override { torch::set_num_threads(threads_); }

 private:
  int threads_ = torch::get_num_threads();
};

TEST_F(Attention, SizesAndThreads) {
  torch::manual_seed(1);
  int step = 0;
  for (const Sizes& s : {Sizes{"quaternion", 2, 64, 64, 3, 16},
                         {"quaternion", 1, 1, 1, 2, 4},
                         {"quaternion", 3, 33, 17, 2, 5},
                         {"quaternion", 1, 7, 130, 1, 8},
                         {"complex", 2, 65, 31, 3, 3},
                         {"octonion", 2, 20, 16, 2, 2},
                         {"split_quaternion", 1, 130, 129, 2, 7},
                         {"dual", 2, 15, 1500, 1, 1},
                         {"sedenion", 1, 9, 40, 2, 3},
                         {"clifford(2,1)", 2, 2, 15, 2, 4}}) {
    SCOPED_TRACE(std::string(s.algebra) + ", " + std::to_string(s.queries) + " queries, " +
                 std::to_string(s.keys) + " keys");
    torch::set_num_threads(1 + step++ % 3);
    const int64_t n = algebra::get(s.algebra).n();
    const auto heads = [&](int64_t length) { return torch::randn({s.texts, length, n, s.heads, s.m}); };
    const at::Tensor Q = heads(s.queries), K = heads(s.keys), V = heads(s.keys);
    check(s.algebra, Q, K, V);
    at::Tensor padding = torch::rand({s.texts, s.keys}) < 0.4;
    check(s.algebra, Q, K, V, padding);
    padding[0].fill_(true);  // no key at all: zeros
    check(s.algebra, Q, K, V, padding);
  }
}

TEST_F(Attention, PartsOfAPackedProjection) {
  torch::manual_seed(2);
  const at::Tensor projected = torch::randn({2, 21, 3 * 4 * 2 * 6});
  const auto cut = ops::cut_heads(projected, 2, 4, 3);
  check("quaternion", cut[0], cut[1], cut[2]);
  const at::Tensor by_head = torch::randn({2, 2, 21, 4, 6}).permute({0, 2, 3, 1, 4}),
                   by_value = torch::randn({2, 21, 4, 6, 2}).transpose(3, 4);
  check("quaternion", by_head, by_value, by_head);
}

TEST_F(Attention, LargeScoresAndThoseThatAreNotFinite) {
  torch::manual_seed(3);
  const auto heads = [&](double scale) { return torch::randn({1, 20, 4, 1, 4}) * scale; };
  check("quaternion", heads(30), heads(30), heads(1));  // weights near 0 and 1
  const at::Tensor Q = heads(1), K = heads(1), V = heads(1);
  const at::Tensor clean = ops::hypercomplex_attention(Q, K, V, "quaternion");
  Q[0][3] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor got = ops::hypercomplex_attention(Q, K, V, "quaternion");
  EXPECT_TRUE(got[0][3].isnan().all().item<bool>());
  EXPECT_TRUE(torch::equal(got[0].slice(0, 4), clean[0].slice(0, 4)));
}

// Keys are filled up to sixteen, in memory that an earlier call has used.
TEST_F(Attention, NothingIsLeftOfEarlierCalls) {
  torch::manual_seed(4);
  torch::set_num_threads(1);
  const auto heads = [&](int64_t length) { return torch::randn({1, length, 4, 2, 5}); };
  const at::Tensor Q = heads(11), K = heads(19), V = heads(19);
  const at::Tensor before = ops::hypercomplex_attention(Q, K, V, "quaternion");
  const at::Tensor nan = heads(200).fill_(std::numeric_limits<double>::quiet_NaN());
  ops::hypercomplex_attention(nan, nan, nan, "quaternion");
  EXPECT_TRUE(torch::equal(ops::hypercomplex_attention(Q, K, V, "quaternion"), before));
}

TEST_F(Attention, OtherTypesEmptyTextsAndLongOnesAreComposed) {
  torch::manual_seed(5);
  const auto long_heads = [](int64_t length) { return torch::randn({1, length, 4, 1, 64}); };
  check("quaternion", long_heads(5), long_heads(3000), long_heads(3000));
  const auto heads = [&](int64_t texts, at::ScalarType type) {
    return torch::randn({texts, 6, 4, 2, 5}).to(type);
  };
  for (const auto& [type, allowed] : {std::pair{torch::kDouble, 1e-14}, {torch::kBFloat16, 2e-2}}) {
    const at::Tensor Q = heads(2, type), K = heads(2, type), V = heads(2, type);
    const at::Tensor got = ops::hypercomplex_attention(Q, K, V, "quaternion");
    EXPECT_EQ(got.scalar_type(), type);
    EXPECT_LE(relative_error(got, defined(table_of("quaternion"), Q, K, V, {})), allowed);
  }
  const at::Tensor none = heads(0, torch::kFloat);
  EXPECT_EQ(ops::hypercomplex_attention(none, none, none, "quaternion").sizes(),
            (std::vector<int64_t>{0, 6, 40}));
}

}  // namespace
}  // namespace quatrain
