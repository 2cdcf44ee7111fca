// hypercomplex_alignment against two calls of attention, where one kernel makes both and where it cannot.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <limits>

#include "ops/alignment/alignment.h"
#include "ops/attention/call.h"
#include "ops/reference.h"
#include "quatrain/algebra.h"
#include "quatrain/layer_ops.h"
#include "quatrain/pair_ops.h"

namespace quatrain {
namespace {

using test::relative_error;
using torch::autograd::variable_list;

/// Two texts of heads, the second of which are padded behind their first words.
struct Pair {
  const char* algebra;
  at::Tensor A, B, first_padding, second_padding;
};
Pair pair(const char* algebra, int64_t n, int64_t la, int64_t lb, int64_t m, int64_t heads = 1,
          at::ScalarType type = torch::kFloat) {
  const auto padding = [](int64_t length, int64_t counted) {
    at::Tensor mask = torch::zeros({3, length}, torch::kBool);
    mask[1].slice(0, std::min(counted, length)).fill_(true);
    return mask;
  };
  const auto words = [&](int64_t length) {
    return torch::randn({3, length, n, heads, 2 * m}, type).slice(-1, 0, m).mul_(0.4);  // with gaps
  };
  return {algebra, words(la), words(lb), padding(la, 2), padding(lb, 1)};
}

std::tuple<at::Tensor, at::Tensor> aligned(const Pair& p) {
  return ops::hypercomplex_alignment(p.A, p.B, p.first_padding, p.second_padding, p.algebra);
}
/// By the formula, in float64: E = A * B^T by the table.
std::tuple<at::Tensor, at::Tensor> by_the_formula(const Pair& p) {
  const auto words = [](const at::Tensor& t) { return t.to(torch::kDouble).permute({0, 3, 2, 1, 4}); };
  const at::Tensor A = words(p.A), B = words(p.B);  // (texts, heads, n, words, m)
  const at::Tensor E = torch::einsum("icj,bhixm,bhjym->bhcxy", {test::table_of(p.algebra).to(A), A, B});
  const auto seen = [](const at::Tensor& scores, const at::Tensor& padding, const at::Tensor& values) {
    const at::Tensor hidden = padding.view({padding.size(0), 1, 1, 1, padding.size(1)});
    const at::Tensor weights =
        scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()).softmax(-1);
    return weights.nan_to_num(0.0).matmul(values).permute({0, 3, 2, 1, 4}).flatten(2);
  };
  return {seen(E, p.second_padding, B), seen(E.transpose(-1, -2), p.first_padding, A)};
}

bool together(const Pair& p, bool with_gradient = true) {
  const ops::AlignmentCalls calls{ops::attention_call({.algebra = p.algebra, .scale = 1}),
                                  ops::attention_call({.algebra = p.algebra, .scale = 1})};
  return ops::cpu::aligns_together(calls, p.A, p.B, with_gradient);
}

struct AlignmentCase {
  const char* algebra;
  int64_t n, la, lb, m, heads;
  bool together;
};
constexpr AlignmentCase kAlignments[] = {
    {"quaternion", 4, 30, 30, 64, 1, true}, {"quaternion", 4, 1, 5, 16, 2, true},
    {"quaternion", 4, 17, 64, 3, 1, true},  {"split_quaternion", 4, 40, 9, 24, 1, true},
    {"octonion", 8, 6, 21, 32, 1, true},    {"complex", 2, 33, 12, 1, 3, true},
    {"octonion", 8, 33, 40, 32, 1, false},  {"octonion", 8, 32, 32, 5, 1, true},
    {"quaternion", 4, 65, 9, 8, 1, false},  {"quaternion", 4, 9, 130, 8, 1, false},
};

TEST(Alignment, FollowsTheFormula) {
  torch::manual_seed(1);
  for (const auto& [algebra, n, la, lb, m, heads, one_kernel] : kAlignments)
    for (const auto type : {torch::kFloat, torch::kDouble}) {
      const Pair p = pair(algebra, n, la, lb, m, heads, type);
      EXPECT_EQ(together(p), one_kernel && type == torch::kFloat) << algebra << la << " " << lb;
      const auto [first, second] = aligned(p);
      const auto [expected_first, expected_second] = by_the_formula(p);
      const double near = type == torch::kFloat ? 3e-6 : 1e-13;
      EXPECT_LT(relative_error(first, expected_first), near) << algebra << la << " " << lb;
      EXPECT_LT(relative_error(second, expected_second), near) << algebra << la << " " << lb;
    }
}

TEST(Alignment, HasDerivatives) {
  torch::manual_seed(2);
  for (const auto& [algebra, n, la, lb, m, heads, one_kernel] : kAlignments) {
    const Pair p = pair(algebra, n, la, lb, m, heads);
    const at::Tensor A = p.A.clone().requires_grad_(), B = p.B.clone().requires_grad_();
    const at::Tensor of_first = torch::randn({3, la, n * heads * m}),
                     of_second = torch::randn({3, lb, n * heads * m});
    const Pair leaves{algebra, A, B, p.first_padding, p.second_padding};
    const auto gradients = [&](const auto& function, bool only_first) {
      const auto [first, second] = function(leaves);
      const at::Tensor y = (first * of_first).sum() + (only_first ? first.sum() : (second * of_second).sum());
      return torch::autograd::grad({y}, {A, B});
    };
    for (const bool only_first : {false, true}) {
      const variable_list got = gradients(&aligned, only_first),
                          expected = gradients(&by_the_formula, only_first);
      for (size_t i = 0; i < 2; ++i)
        EXPECT_LT(relative_error(got[i], expected[i]), 1e-5) << algebra << la << " " << lb << " " << i;
    }
  }
}

TEST(Alignment, HasSecondDerivatives) {
  torch::manual_seed(3);
  const Pair p = pair("quaternion", 4, 5, 7, 3);
  const at::Tensor A = p.A.clone().requires_grad_(), B = p.B.clone().requires_grad_();
  const auto gradients = [&](const auto& function) {
    const auto [first, second] = function(Pair{"quaternion", A, B, p.first_padding, p.second_padding});
    const auto once =
        torch::autograd::grad({first.pow(2).sum() + second.pow(3).sum()}, {A, B}, {}, true, true);
    return torch::autograd::grad({once[0].pow(2).sum() + once[1].sin().sum()}, {A, B});
  };
  const variable_list got = gradients(&aligned), expected = gradients(&by_the_formula);
  for (size_t i = 0; i < 2; ++i) EXPECT_LT(relative_error(got[i], expected[i]), 1e-5) << i;
}

// As with two calls of attention: padding is never read as a key, a text without a word gives zeros.
TEST(Alignment, HidesPadding) {
  torch::manual_seed(4);
  Pair p = pair("quaternion", 4, 9, 11, 16);
  ASSERT_TRUE(together(p));
  const auto [first, second] = aligned(p);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  p.B[1].slice(0, 1).fill_(nan), p.A[1].slice(0, 2).fill_(nan);
  const auto [of_first, of_second] = aligned(p);
  EXPECT_TRUE(of_first[0].equal(first[0]) && of_second[2].equal(second[2]));
  EXPECT_TRUE(of_first[1].slice(0, 0, 2).equal(first[1].slice(0, 0, 2)));
  EXPECT_TRUE(of_second[1].slice(0, 0, 1).equal(second[1].slice(0, 0, 1)));

  Pair q = pair("quaternion", 4, 9, 11, 16);
  q.second_padding[1].fill_(true);
  for (at::Tensor* t : {&q.A, &q.B}) *t = t->clone().requires_grad_();
  const auto [seen, seeing] = aligned(q);
  EXPECT_EQ(seen[1].abs().max().item<float>(), 0);
  EXPECT_GT(seeing[1].abs().max().item<float>(), 0);
  const variable_list got = torch::autograd::grad({seen.pow(2).sum() + seeing.pow(2).sum()}, {q.A, q.B});
  const auto [expected_seen, expected_seeing] = by_the_formula(q);
  const variable_list expected =
      torch::autograd::grad({expected_seen.pow(2).sum() + expected_seeing[0].pow(2).sum() +
                             expected_seeing.slice(0, 1).pow(2).sum()},
                            {q.A, q.B});
  for (size_t i = 0; i < 2; ++i) EXPECT_LT(relative_error(got[i][0], expected[i][0]), 1e-5) << i;
  EXPECT_TRUE(got[0].isfinite().all().item<bool>() && got[1].isfinite().all().item<bool>());
}

// As with two calls: what nobody sees is not read in the backward pass either.
TEST(Alignment, HidesPaddingFromGradients) {
  torch::manual_seed(5);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto gradients = [](const Pair& p, bool of_first, bool of_second, bool by_calls) {
    const at::Tensor A = p.A.clone().requires_grad_(), B = p.B.clone().requires_grad_();
    const ops::AttentionOptions first_sees{.algebra = p.algebra, .padding = p.second_padding, .scale = 1},
        second_sees{.algebra = p.algebra,
                    .padding = p.first_padding,
                    .scale = 1,
                    .order = ops::ProductOrder::key_query};
    const auto [first, second] = by_calls ? std::tuple(ops::hypercomplex_attention(A, B, B, first_sees),
                                                       ops::hypercomplex_attention(B, A, A, second_sees))
                                          : aligned({p.algebra, A, B, p.first_padding, p.second_padding});
    at::Tensor y = torch::zeros({});
    if (of_first) y = y + first.slice(0, 0, 1).pow(2).sum() + first.slice(0, 2).sum() + first[1][0].sum();
    if (of_second) y = y + second.slice(0, 0, 1).pow(2).sum() + second.slice(0, 2).sum() + second[1][0].sum();
    return torch::autograd::grad({y}, {A, B}, {}, std::nullopt, false, true);
  };
  struct Case {
    int64_t first_words, second_words;  // of the second pair
    bool first_is_nan, second_is_nan, of_first, of_second;
  };
  for (const Case& c : {Case{0, 0, true, true, true, true}, Case{0, 1, false, true, true, true},
                        Case{2, 0, true, false, true, true}, Case{2, 1, false, true, true, false},
                        Case{2, 1, true, false, false, true}, Case{2, 1, false, false, true, false}}) {
    Pair p = pair("quaternion", 4, 9, 11, 16);
    ASSERT_TRUE(together(p));
    p.first_padding[1].slice(0, c.first_words).fill_(true);
    p.second_padding[1].slice(0, c.second_words).fill_(true);
    if (c.first_is_nan) p.A[1].slice(0, c.first_words).fill_(nan);
    if (c.second_is_nan) p.B[1].slice(0, c.second_words).fill_(nan);
    const variable_list got = gradients(p, c.of_first, c.of_second, false),
                        expected = gradients(p, c.of_first, c.of_second, true);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(expected[i].isfinite().all().item<bool>());
      EXPECT_LT(relative_error(got[i], expected[i]), 1e-5)
          << c.first_words << " " << c.second_words << " " << i;
    }
  }
}

// Without mixing, as the passes of one call may go different ways: then the pair must fit both.
TEST(Alignment, TakesAlgebrasOfManyProducts) {
  torch::manual_seed(6);
  std::vector<double> table(64);
  const at::Tensor ones = torch::randperm(64);
  for (int64_t i = 0; i < 14; ++i) table[static_cast<size_t>(ones[i].item<int64_t>())] = 1;
  algebra::add("alignment_test_own", 4, table);
  const Pair p = pair("alignment_test_own", 4, 50, 50, 190);
  const at::Tensor A = p.A.clone().mul_(0.1).requires_grad_(), B = p.B.clone().mul_(0.1).requires_grad_();
  const Pair leaves{p.algebra, A, B, p.first_padding, p.second_padding};
  const auto [first, second] = aligned(leaves);
  const auto [expected_first, expected_second] = by_the_formula(leaves);
  EXPECT_LT(relative_error(first, expected_first), 1e-5);
  EXPECT_LT(relative_error(second, expected_second), 1e-5);
}

TEST(Alignment, ResultsMayBeOverwritten) {
  const Pair p = pair("quaternion", 4, 5, 6, 8);
  const at::Tensor A = p.A.clone().requires_grad_();
  auto [first, second] = aligned({p.algebra, A, p.B, p.first_padding, p.second_padding});
  EXPECT_FALSE(first.is_view() || second.is_view());
  first.mul_(2);
  EXPECT_TRUE(torch::autograd::grad({first.sum() + second.sum()}, {A})[0].isfinite().all().item<bool>());
}

TEST(Alignment, TakesEmptyTextsAndRefusesWrongOnes) {
  const auto words = [](int64_t texts, int64_t length) { return torch::randn({texts, length, 4, 1, 2}); };
  const auto none = [](int64_t texts, int64_t length) { return torch::zeros({texts, length}, torch::kBool); };
  const auto [first, second] =
      ops::hypercomplex_alignment(words(2, 3), words(2, 0), none(2, 3), none(2, 0), "quaternion");
  EXPECT_TRUE(first.equal(torch::zeros({2, 3, 8})));
  EXPECT_EQ(second.sizes(), (std::vector<int64_t>{2, 0, 8}));
  const auto refused = [&](const at::Tensor& A, const at::Tensor& B, const at::Tensor& a, const at::Tensor& b,
                           const char* algebra) {
    EXPECT_THROW(ops::hypercomplex_alignment(A, B, a, b, algebra), c10::Error);
  };
  refused(words(2, 3), words(1, 3), none(2, 3), none(1, 3), "quaternion");
  refused(words(2, 3), words(2, 4), none(2, 4), none(2, 3), "quaternion");
  refused(words(2, 3), words(2, 4), none(2, 3), none(2, 4), "octonion");
  refused(words(2, 3), words(2, 4), none(2, 3).to(torch::kLong), none(2, 4), "quaternion");
  refused(words(2, 3), words(2, 4), none(2, 3), {}, "quaternion");
}

}  // namespace
}  // namespace quatrain
