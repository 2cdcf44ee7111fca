#pragma once

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/call.h"
#include "ops/reference.h"

/// Attention by its definition in float64, and what compares with it.
namespace quatrain::test {

/// What a query sees: bool (B, h, 1, L, S).
inline at::Tensor seen_keys(const at::Tensor& Q, const at::Tensor& K, const ops::AttentionOptions& o) {
  const int64_t B = Q.size(0), h = Q.size(3), L = Q.size(1), S = K.size(1);
  at::Tensor seen = torch::ones({B, h, L, S}, torch::kBool);
  if (o.padding.defined()) seen = seen & ~o.padding.view({B, 1, 1, S});
  if (o.mask.defined())
    seen = seen & (o.mask.scalar_type() == torch::kBool ? o.mask
                                                        : o.mask != -std::numeric_limits<double>::infinity());
  if (o.causal) {
    const double offset = static_cast<double>(o.offset.expect_int());  // of any size
    const at::Tensor last = torch::arange(L, torch::kDouble) + offset;
    seen = seen & (torch::arange(S, torch::kDouble) <= last.unsqueeze(1));
  }
  return seen.unsqueeze(2);
}

/// The weights (B, h, maps, L, S). A is the algebra's table.
inline at::Tensor defined_weights(const at::Tensor& A, const at::Tensor& Q, const at::Tensor& K,
                                  const ops::AttentionOptions& o) {
  const at::Tensor q = Q.to(torch::kDouble), k = K.to(torch::kDouble),
                   table = o.order == ops::ProductOrder::query_key ? A : A.transpose(0, 2);
  // One map: the table's one entry times the real product, over heads of any number of components.
  at::Tensor scores = A.size(0) == 1
                          ? torch::einsum("blihm,bsihm->bhls", {q, k}).unsqueeze(2) * A.item<double>()
                          : torch::einsum("icj,blihm,bsjhm->bhcls", {table, q, k});
  scores = scores * o.scale.value_or(1 / std::sqrt(static_cast<double>(Q.size(2) * Q.size(4))));
  const at::Tensor seen = seen_keys(Q, K, o);
  if (o.mask.defined() && o.mask.scalar_type() != torch::kBool) {
    const at::Tensor mask = o.mask.to(torch::kDouble).expand({Q.size(0), Q.size(3), Q.size(1), K.size(1)});
    scores = scores + mask.unsqueeze(2).masked_fill(~seen, 0);
  }
  // Far below all scores, and finite: a query without keys has a softmax then, which is made zero.
  return torch::softmax(scores.masked_fill(~seen, -1e30), -1) * seen.any(-1, true).to(torch::kDouble);
}

/// (B, L, n h m). `drops`: what dropout makes of the weights.
inline at::Tensor defined(const at::Tensor& Q, const at::Tensor& K, const at::Tensor& V,
                          const ops::AttentionOptions& o, const at::Tensor& drops = {}) {
  at::Tensor weights = defined_weights(table_of(o.algebra), Q, K, o);
  if (drops.defined()) weights = weights * drops.to(torch::kDouble);
  weights = weights.expand({-1, -1, Q.size(2), -1, -1});
  return torch::einsum("bhcls,bschm->blchm", {weights, V.to(torch::kDouble)}).flatten(2);
}

/// A call of the operators below autograd, with a seed.
inline ops::AttentionCall seeded(const ops::AttentionOptions& o, const at::Tensor& seed = {}) {
  ops::AttentionCall call = ops::attention_call(o);
  call.seed = seed;
  return call;
}

/// The seed that the next call of the operator takes.
inline at::Tensor next_seed() {
  return torch::randint(std::numeric_limits<int64_t>::max(), {1}, torch::kLong);
}

/// The gradients of query, key and value for that of the result.
inline std::vector<at::Tensor> gradients(const std::vector<at::Tensor>& heads, const at::Tensor& out,
                                         const at::Tensor& grad) {
  return torch::autograd::grad({out}, heads, {grad.to(out.scalar_type())});
}

inline std::vector<at::Tensor> leaves(std::initializer_list<at::Tensor> heads, at::ScalarType type) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& t : heads) result.push_back(t.detach().to(type).requires_grad_());
  return result;
}

inline void expect_near(const std::vector<at::Tensor>& got, const std::vector<at::Tensor>& expected,
                        double allowed) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].sizes(), expected[i].sizes());
    const double size = expected[i].abs().max().item<double>();
    const at::Tensor apart = (got[i].to(torch::kDouble) - expected[i].to(torch::kDouble)).abs();
    EXPECT_LE(apart.max().item<double>(), allowed * (size + 0.1)) << i;
  }
}

class Attention : public testing::Test {
 protected:
  ~Attention() override { torch::set_num_threads(threads_); }

 private:
  int threads_ = torch::get_num_threads();
};

}  // namespace quatrain::test
