// Component-wise attention, which a CPU computes tile by tile in both directions, against the definition in
// float64.

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <limits>

#include "ops/attention/score_products.h"
#include "ops/attention_reference.h"

namespace quatrain {
namespace {

using ops::AttentionOptions;
using test::Attention;
using test::defined;
using test::expect_near;
using test::gradients;
using test::leaves;
using test::relative_error;
using test::seeded;

/// The whole way of a training step, with the draws that the generator's next seed gives where dropout > 0.
void check_gradients(const std::string& name, const at::Tensor& Q, const at::Tensor& K, const at::Tensor& V,
                     const at::Tensor& padding = {}, double dropout = 0) {
  const int64_t n = Q.size(2);
  const AttentionOptions options{.algebra = name, .padding = padding, .dropout = dropout};
  const at::Tensor grad = torch::randn({Q.size(0), Q.size(1), n * Q.size(3) * Q.size(4)});
  at::Tensor drops;
  if (dropout > 0) {
    torch::manual_seed(11);
    drops = ops::dropout_mask(Q, K, n, dropout, test::next_seed());
    torch::manual_seed(11);
  }
  const auto narrow = leaves({Q, K, V}, Q.scalar_type()), wide = leaves({Q, K, V}, torch::kDouble);
  const at::Tensor out = ops::hypercomplex_attention(narrow[0], narrow[1], narrow[2], options);
  const at::Tensor expected = defined(wide[0], wide[1], wide[2], options, drops);
  EXPECT_LE((out - expected).abs().max().item<double>(), 1e-4 * (1 + expected.abs().max().item<double>()));
  expect_near(gradients(narrow, out, grad), gradients(wide, expected, grad), 1e-4);
}

void check(const std::string& name, const at::Tensor& Q, const at::Tensor& K, const at::Tensor& V,
           const at::Tensor& padding = {}) {
  const AttentionOptions options{.algebra = name, .padding = padding};
  const at::Tensor expected = defined(Q, K, V, options);
  const at::Tensor got = ops::hypercomplex_attention(Q, K, V, options);
  EXPECT_FALSE(got.requires_grad());
  ASSERT_EQ(got.sizes(), expected.sizes());
  EXPECT_TRUE(got.is_contiguous());
  // Sums over all keys at once: over 1500 of them somewhat more rounding than in blocks.
  const at::Tensor composed =
      ops::composed::attention(seeded(options), Q.contiguous(), K.contiguous(), V.contiguous());
  const double allowed = 2 * relative_error(composed, expected) + 1e-6;
  EXPECT_LE(relative_error(got, expected), allowed);
  check_gradients(name, Q, K, V, padding);
  // Inference of a model is the same under each guard.
  const torch::NoGradGuard no_grad;
  EXPECT_TRUE(torch::equal(ops::hypercomplex_attention(Q.detach().requires_grad_(), K, V, options), got));
}

struct AttentionCase {
  const char* algebra;
  int64_t texts, queries, keys, heads, m;
};

TEST_F(Attention, SizesAndThreads) {
  torch::manual_seed(1);
  int step = 0;
  for (const AttentionCase& s : {AttentionCase{"quaternion", 2, 64, 64, 3, 16},
                                 {"quaternion", 1, 1, 1, 2, 4},
                                 {"quaternion", 3, 33, 17, 2, 5},
                                 {"quaternion", 1, 7, 130, 1, 8},
                                 {"complex", 2, 65, 31, 3, 3},
                                 {"octonion", 2, 20, 16, 2, 2},
                                 {"split_quaternion", 1, 130, 129, 2, 7},
                                 {"dual", 2, 15, 1500, 1, 1},
                                 {"sedenion", 1, 9, 40, 2, 3},
                                 {"clifford(2,1)", 2, 2, 15, 2, 4},
                                 {"quaternion", 3, 30, 30, 1, 64},
                                 {"octonion", 1, 70, 33, 2, 17},
                                 {"complex", 2, 40, 150, 1, 50},
                                 // Maps that are shorter than what they are multiplied by.
                                 {"quaternion", 2, 70, 20, 1, 64},
                                 {"sedenion", 2, 20, 9, 1, 3}}) {
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

/// The coefficients of a mixture's outputs, (outputs, inputs).
at::Tensor coefficients(const ops::engine::Mixing& mixing, int64_t inputs) {
  const kernels::cpu::Mix mix = mixing.view();
  const at::Tensor rows = torch::zeros({mix.outputs, inputs}, torch::kDouble);
  for (int32_t o = 0; o < mix.outputs; ++o)
    for (int32_t e = mix.begin[o]; e < mix.begin[o + 1]; ++e)
      rows[o][mix.source[e]] += double{mix.coefficient[e]};
  return rows;
}

// What query component i and key component j give to the score of map c is the table's entry, either way.
TEST_F(Attention, ScoresAreMadeOfProductsOrOfMaps) {
  for (const char* name : {"complex", "quaternion", "split_quaternion", "octonion", "clifford(2,1)"})
    for (const ops::ProductOrder order : {ops::ProductOrder::query_key, ops::ProductOrder::key_query})
      for (const bool of_components : {false, true}) {
        SCOPED_TRACE(std::string(name) + (of_components ? ", components" : ", maps"));
        const ops::AttentionCall call = seeded({.algebra = name, .order = order});
        const ops::ScoreProducts how(call, 0.5, of_components);
        const int64_t n = call.algebra->n();
        EXPECT_EQ(how.count, of_components ? call.algebra->factors().rank : n);
        EXPECT_FALSE(ops::ScoreProducts::pay(*call.algebra, 0));
        EXPECT_TRUE(ops::ScoreProducts::pay(*call.algebra, 64));
        const at::Tensor queries = coefficients(how.queries, n).view({how.count, how.parts, n});
        const at::Tensor keys = coefficients(how.keys, n).view({how.mixed ? how.count : 1, how.parts, n});
        const at::Tensor scores =
            how.mixed ? coefficients(how.scores, how.count) : torch::eye(n, torch::kDouble);
        const at::Tensor got =
            torch::einsum("cp,pqi,pqj->icj", {scores, queries, keys.expand({how.count, -1, -1})});
        at::Tensor table = test::table_of(name);
        if (order == ops::ProductOrder::key_query) table = table.transpose(0, 2);
        EXPECT_TRUE(torch::allclose(got, 0.5 * table, 0, 1e-6)) << got;
        EXPECT_TRUE(torch::equal(coefficients(how.from_queries, how.count * how.parts),
                                 coefficients(how.queries, n).t()));
        EXPECT_TRUE(
            torch::equal(coefficients(how.from_keys, how.key_parts()), coefficients(how.keys, n).t()));
        if (how.mixed) {
          EXPECT_TRUE(torch::equal(coefficients(how.from_scores, n), scores.t()));
        }
      }
}

TEST_F(Attention, Dropout) {
  torch::manual_seed(6);
  int step = 0;
  for (const AttentionCase& s : {AttentionCase{"quaternion", 2, 64, 64, 3, 16},
                                 {"complex", 2, 65, 31, 3, 3},
                                 {"octonion", 1, 9, 80, 2, 2},
                                 {"quaternion", 2, 70, 20, 1, 64}})
    for (const double dropout : {0.1, 0.5, 1.0}) {
      SCOPED_TRACE(std::string(s.algebra) + ", " + std::to_string(dropout));
      torch::set_num_threads(1 + step++ % 3);
      const int64_t n = algebra::get(s.algebra).n();
      const auto heads = [&](int64_t length) { return torch::randn({s.texts, length, n, s.heads, s.m}); };
      check_gradients(s.algebra, heads(s.queries), heads(s.keys), heads(s.keys), {}, dropout);
      check_gradients(s.algebra, heads(s.queries), heads(s.keys), heads(s.keys),
                      torch::rand({s.texts, s.keys}) < 0.4, dropout);
    }
  const at::Tensor Q = torch::randn({1, 3, 4, 1, 2});
  EXPECT_THROW(ops::hypercomplex_attention(Q, Q, Q, {.algebra = "quaternion", .dropout = 1.5}), c10::Error);
}

TEST_F(Attention, SeedsOfTheGeneratorRepeatDropout) {
  torch::manual_seed(7);
  const at::Tensor Q = torch::randn({2, 30, 4, 2, 4});
  const auto drawn = [&](uint64_t seed, int threads) {
    torch::manual_seed(seed);
    torch::set_num_threads(threads);
    return ops::hypercomplex_attention(Q, Q, Q, {.algebra = "quaternion", .dropout = 0.3});
  };
  EXPECT_TRUE(torch::equal(drawn(1, 1), drawn(1, 3)));
  EXPECT_FALSE(torch::equal(drawn(1, 1), drawn(2, 1)));
}

TEST_F(Attention, SecondDerivatives) {
  torch::manual_seed(8);
  const at::Tensor seed = torch::full({1}, 3, torch::kLong);
  for (const double dropout : {0.0, 0.4}) {
    const at::Tensor Q = torch::randn({2, 5, 4, 2, 3}), K = torch::randn({2, 7, 4, 2, 3}),
                     V = torch::randn({2, 7, 4, 2, 3}), grad = torch::randn({2, 5, 24});
    at::Tensor padding = torch::zeros({2, 7}, torch::kBool);
    padding[1].slice(0, 4) = true;
    const AttentionOptions options{.algebra = "quaternion", .padding = padding, .dropout = dropout};
    const at::Tensor drops = dropout > 0 ? ops::dropout_mask(Q, K, 4, dropout, seed) : at::Tensor();
    const auto of = [&](at::ScalarType type, const auto& attend) {
      auto heads = leaves({Q, K, V, grad}, type);
      const auto first =
          torch::autograd::grad({attend(heads)}, {heads[0], heads[1], heads[2]}, {heads[3]}, true, true);
      const at::Tensor norm = first[0].square().sum() + first[1].square().sum() + first[2].square().sum();
      return torch::autograd::grad({norm}, heads);
    };
    const auto got = of(torch::kFloat, [&](const std::vector<at::Tensor>& t) {
      return ops::attention_forward(seeded(options, seed), t[0], t[1], t[2]);
    });
    const auto expected = of(torch::kDouble, [&](const std::vector<at::Tensor>& t) {
      return defined(t[0], t[1], t[2], options, drops);
    });
    expect_near(got, expected, 1e-4);
  }
}

// The composed gradients of the operator, which serve other types and devices.
TEST_F(Attention, ComposedGradients) {
  torch::manual_seed(9);
  const at::Tensor seed = torch::full({1}, 5, torch::kLong);
  for (const char* name : {"real", "quaternion", "octonion"}) {
    const int64_t n = name == std::string("octonion") ? 8 : 4;
    const auto heads = [&](int64_t length) { return torch::randn({2, length, n, 2, 3}, torch::kDouble); };
    const auto inputs = leaves({heads(5), heads(7), heads(7)}, torch::kDouble);
    const at::Tensor grad = torch::randn({2, 5, n * 6}, torch::kDouble);
    at::Tensor padding = torch::zeros({2, 7}, torch::kBool);
    padding[0].fill_(true);
    for (const double dropout : {0.0, 0.3}) {
      const auto call = seeded({.algebra = name, .padding = padding, .dropout = dropout}, seed);
      const at::Tensor out = ops::composed::attention(call, inputs[0], inputs[1], inputs[2]);
      const auto [dQ, dK, dV] =
          ops::attention_backward(call, grad, inputs[0].detach(), inputs[1].detach(), inputs[2].detach());
      expect_near({dQ, dK, dV}, gradients(inputs, out, grad), 1e-12);
    }
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
  const at::Tensor clean = ops::hypercomplex_attention(Q, K, V, {.algebra = "quaternion"});
  Q[0][3] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor got = ops::hypercomplex_attention(Q, K, V, {.algebra = "quaternion"});
  EXPECT_TRUE(got[0][3].isnan().all().item<bool>());
  EXPECT_TRUE(torch::equal(got[0].slice(0, 4), clean[0].slice(0, 4)));
}

// Keys are filled up to sixteen, in memory that an earlier call has used.
TEST_F(Attention, NothingIsLeftOfEarlierCalls) {
  torch::manual_seed(4);
  torch::set_num_threads(1);
  for (const int64_t m : {5, 64}) {
    SCOPED_TRACE(m);
    const auto heads = [&](int64_t length) { return torch::randn({1, length, 4, 2, m}); };
    const at::Tensor Q = heads(11), K = heads(19), V = heads(19);
    const at::Tensor before = ops::hypercomplex_attention(Q, K, V, {.algebra = "quaternion"});
    const at::Tensor nan = heads(200).fill_(std::numeric_limits<double>::quiet_NaN());
    const auto soiled = leaves({nan, nan, nan}, torch::kFloat);
    const at::Tensor out =
        ops::hypercomplex_attention(soiled[0], soiled[1], soiled[2], {.algebra = "quaternion"});
    EXPECT_TRUE(gradients(soiled, out, out.detach())[0].isnan().all().item<bool>());
    EXPECT_TRUE(torch::equal(ops::hypercomplex_attention(Q, K, V, {.algebra = "quaternion"}), before));
    check_gradients("quaternion", Q, K, V);
  }
}

TEST_F(Attention, OtherTypesEmptyTextsAndLongOnesAreComposed) {
  torch::manual_seed(5);
  const auto long_heads = [](int64_t length) { return torch::randn({1, length, 4, 1, 64}); };
  check("quaternion", long_heads(5), long_heads(3000), long_heads(3000));
  // Products of single components would not fit, a product a map does.
  check("quaternion", long_heads(9), long_heads(1400), long_heads(1400));
  const auto heads = [&](int64_t texts, at::ScalarType type) {
    return torch::randn({texts, 6, 4, 2, 5}).to(type);
  };
  for (const auto& [type, allowed] : {std::pair{torch::kDouble, 1e-14}, {torch::kBFloat16, 2e-2}}) {
    const at::Tensor Q = heads(2, type), K = heads(2, type), V = heads(2, type);
    const at::Tensor got = ops::hypercomplex_attention(Q, K, V, {.algebra = "quaternion"});
    EXPECT_EQ(got.scalar_type(), type);
    EXPECT_LE(relative_error(got, defined(Q, K, V, {.algebra = "quaternion"})), allowed);
  }
  const at::Tensor none = heads(0, torch::kFloat);
  EXPECT_EQ(ops::hypercomplex_attention(none, none, none, {.algebra = "quaternion"}).sizes(),
            (std::vector<int64_t>{0, 6, 40}));
}

// A scale that turns scores round, or makes all of them equal, hides no other keys.
TEST_F(Attention, CausalWithAnyScaleAndTable) {
  torch::manual_seed(12);
  for (const auto& [name, entry] : {std::pair{"attention_test_twice", 2.0}, {"attention_test_minus", -1.0}})
    algebra::add(name, 1, {entry});
  struct Shape {
    const char* algebra;
    int64_t length, m;
  };
  for (const Shape& s : {Shape{"real", 5, 3},
                         {"quaternion", 5, 3},
                         // Several tiles of maps that are shorter than what they are multiplied by.
                         {"quaternion", 100, 128},
                         {"attention_test_twice", 5, 3},
                         {"attention_test_minus", 5, 3}})
    for (const std::optional<double> scale : std::vector<std::optional<double>>{{}, -1.0, 0.0, 0.5})
      for (const bool causal : {true, false}) {
        SCOPED_TRACE(std::string(s.algebra) + ", " + std::to_string(s.length) + " words, scale " +
                     (scale ? std::to_string(*scale) : "of its own") + (causal ? ", causal" : ""));
        const int64_t n = algebra::get(s.algebra).n();
        // Scores of a size, however many values they are sums of.
        const double small = std::sqrt(3.0 / static_cast<double>(s.m));
        const auto heads = [&] { return torch::randn({2, s.length, n, 2, s.m}); };
        const at::Tensor Q = heads(), K = heads(), V = heads(),
                         grad = torch::randn({2, s.length, n * 2 * s.m});
        const AttentionOptions options{
            .algebra = s.algebra, .causal = causal, .scale = scale ? *scale * small : scale};
        const auto narrow = leaves({Q, K, V}, torch::kFloat), wide = leaves({Q, K, V}, torch::kDouble);
        const at::Tensor out = ops::hypercomplex_attention(narrow[0], narrow[1], narrow[2], options),
                         expected = defined(wide[0], wide[1], wide[2], options);
        EXPECT_LT(relative_error(out.detach(), expected.detach()), 1e-5);
        expect_near(gradients(narrow, out, grad), gradients(wide, expected, grad), 1e-5);
        const auto [dQ, dK, dV] = ops::attention_backward(seeded(options), grad, Q, K, V);
        expect_near({dQ, dK, dV}, gradients(wide, defined(wide[0], wide[1], wide[2], options), grad), 1e-5);
      }
}

}  // namespace
}  // namespace quatrain
