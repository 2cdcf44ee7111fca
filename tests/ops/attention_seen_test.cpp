// What queries see: masks, causality, padding, caches, orders and scales, against the definition in float64.

#include <ATen/record_function.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <fstream>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "ops/attention_reference.h"

namespace quatrain {
namespace {

using ops::AttentionOptions;
using ops::ProductOrder;
using test::Attention;
using test::defined;
using test::expect_near;
using test::gradients;
using test::leaves;
using test::relative_error;
using test::seeded;

using AttentionSeen = Attention;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A user's algebra: neither commutative nor with a unit.
std::string own_algebra() {
  return algebra::add("attention_own", 3,
                      {1, 0, .5, 0, -1, 0, 0, 0, 2, 0, 1, 0, 0, 0, -1, 1, 0, 0, 0, .5, 0, 1, 0, 0, 0, -2, 1})
      .name();
}

struct Shape {
  std::string algebra;
  int64_t queries, keys, heads, m;
};

at::Tensor heads(const Shape& s, int64_t length, int64_t texts = 2) {
  return torch::randn({texts, length, algebra::get(s.algebra).n(), s.heads, s.m});
}

/// Masks of every kind, for two texts; the first is undefined.
std::vector<at::Tensor> masks(const Shape& s) {
  const int64_t L = s.queries, S = s.keys, h = s.heads;
  const auto hide = [](const at::Tensor& t, double part) {
    return t.masked_fill(torch::rand_like(t) < part, -kInfinity);
  };
  at::Tensor some_blind = torch::rand({2, 1, L, S}) < 0.6;
  some_blind[0][0][L / 2] = false;
  return {{},
          torch::rand({L, S}) < 0.7,
          some_blind,
          torch::rand({2, 1, 1, S}) < 0.7,
          torch::rand({L, 1}) < 0.7,
          torch::randn({2, h, L, S}),
          hide(torch::randn({h, 1, S}), 0.3),
          hide(torch::randn({1, h, L, S}), 0.9),
          hide(torch::randn({2, 1, S, L}), 0.3).transpose(2, 3),
          torch::randn({2, h, L, S}).to(torch::kDouble)};
}

/// Each way a call may go, forward and backward.
void check(const Shape& s, const AttentionOptions& options, const at::Tensor& Q, const at::Tensor& K,
           const at::Tensor& V) {
  const at::Tensor grad = torch::randn({Q.size(0), Q.size(1), Q.size(2) * Q.size(3) * Q.size(4)});
  const auto narrow = leaves({Q, K, V}, torch::kFloat), wide = leaves({Q, K, V}, torch::kDouble),
             exact = leaves({Q, K, V}, torch::kDouble);
  const at::Tensor expected = defined(exact[0], exact[1], exact[2], options);
  const auto expected_gradients = gradients(exact, expected, grad);
  // In float32 on this device by tiles where n > 1, in float64 composed.
  const at::Tensor got = ops::hypercomplex_attention(narrow[0], narrow[1], narrow[2], options);
  expect_near({got}, {expected}, 1e-5);
  expect_near(gradients(narrow, got, grad), expected_gradients, 1e-4);
  const at::Tensor same = ops::hypercomplex_attention(wide[0], wide[1], wide[2], options);
  expect_near({same}, {expected}, 1e-12);
  expect_near(gradients(wide, same, grad), expected_gradients, 1e-11);
  const auto [result, weights] = ops::hypercomplex_attention_with_weights(wide[0], wide[1], wide[2], options);
  expect_near({result}, {expected}, 1e-12);
  expect_near({weights}, {test::defined_weights(test::table_of(s.algebra), Q, K, options)}, 1e-12);
  // The operators below, whose keys are not cut.
  const auto [dQ, dK, dV] = ops::attention_backward(seeded(options), grad.to(torch::kDouble),
                                                    wide[0].detach(), wide[1].detach(), wide[2].detach());
  expect_near({dQ, dK, dV}, expected_gradients, 1e-11);
  expect_near({ops::attention_forward(seeded(options), Q, K, V)}, {expected}, 1e-5);
}

TEST_F(AttentionSeen, AllTogether) {
  torch::manual_seed(1);
  int step = 0;
  for (const Shape& s : {Shape{"real", 6, 9, 2, 3},
                         {"complex", 20, 13, 2, 3},
                         {"quaternion", 5, 9, 2, 3},
                         {"quaternion", 70, 150, 2, 4},
                         {"quaternion", 1, 33, 3, 2},
                         {"octonion", 9, 5, 2, 2},
                         {own_algebra(), 7, 20, 2, 3}}) {
    const at::Tensor Q = heads(s, s.queries), K = heads(s, s.keys), V = heads(s, s.keys);
    const int64_t L = s.queries, S = s.keys;
    std::vector<at::Tensor> paddings{{}, torch::rand({2, S}) < 0.3, torch::zeros({2, S}, torch::kBool)};
    paddings[2][0].fill_(true);
    const std::vector<at::Tensor> all = masks(s);
    for (size_t mask = 0; mask < all.size(); ++mask)
      for (const at::Tensor& padding : paddings)
        for (const std::optional<int64_t> offset :
             {std::optional<int64_t>(), {0}, {S - L}, {-L / 2}, {S}, {-L}}) {
          if (torch::rand({}).item<double>() > (L > 50 ? 0.2 : 0.5)) continue;  // all meet in some algebra
          AttentionOptions options{.algebra = s.algebra, .padding = padding, .mask = all[mask]};
          options.causal = offset.has_value();
          options.offset = offset.value_or(0);
          options.order = ++step % 2 ? ProductOrder::key_query : ProductOrder::query_key;
          if (step % 3 == 0) options.scale = 0.4;
          SCOPED_TRACE(s.algebra + ", L = " + std::to_string(L) + ", mask " + std::to_string(mask) +
                       ", offset " + (offset ? std::to_string(*offset) : "none") + ", padding " +
                       (padding.defined() ? "some" : "none") + ", " + name(options.order));
          torch::set_num_threads(1 + step % 2);
          check(s, options, Q, K, V);
          if (HasFailure()) return;
        }
  }
}

TEST_F(AttentionSeen, DropsTheSameWeightsWhateverIsCutOff) {
  torch::manual_seed(2);
  for (const int64_t offset : {0, 60}) {  // of 200 keys the last ones are seen by none, and cut off
    const Shape s{"quaternion", 70, 200, 2, 4};
    const AttentionOptions options{.algebra = "quaternion", .causal = true, .offset = offset, .dropout = 0.4};
    const at::Tensor Q = heads(s, s.queries), K = heads(s, s.keys), V = heads(s, s.keys);
    torch::manual_seed(11);
    const at::Tensor drops = ops::dropout_mask(Q, K, 4, 0.4, test::next_seed());
    torch::manual_seed(11);
    const auto narrow = leaves({Q, K, V}, torch::kFloat), exact = leaves({Q, K, V}, torch::kDouble);
    const at::Tensor got = ops::hypercomplex_attention(narrow[0], narrow[1], narrow[2], options);
    const at::Tensor expected = defined(exact[0], exact[1], exact[2], options, drops);
    expect_near({got}, {expected}, 1e-5);
    const at::Tensor grad = torch::randn_like(got);
    expect_near(gradients(narrow, got, grad), gradients(exact, expected, grad), 1e-4);
  }
}

TEST_F(AttentionSeen, ThreadsDoNotMatter) {
  torch::manual_seed(3);
  const Shape s{"quaternion", 100, 130, 3, 4};
  const at::Tensor Q = heads(s, s.queries), K = heads(s, s.keys), V = heads(s, s.keys);
  for (const at::Tensor& mask : masks(s)) {
    const AttentionOptions options{
        .algebra = "quaternion", .mask = mask, .causal = true, .offset = 30, .dropout = 0.2};
    const auto of = [&](int threads) {
      torch::set_num_threads(threads);
      torch::manual_seed(5);
      const auto inputs = leaves({Q, K, V}, torch::kFloat);
      const at::Tensor out = ops::hypercomplex_attention(inputs[0], inputs[1], inputs[2], options);
      std::vector<at::Tensor> all = gradients(inputs, out, torch::ones_like(out));
      all.push_back(out.detach());
      return all;
    };
    const auto one = of(1), two = of(2);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(torch::equal(one[i], two[i])) << i;
  }
}

/// The operators of ATen that a call makes.
template <class Function>
std::multiset<std::string> called(const Function& function) {
  static thread_local std::multiset<std::string> names;
  names.clear();
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& f) -> std::unique_ptr<at::ObserverContext> {
        names.insert(f.name());
        return nullptr;
      }).scopes({at::RecordScope::FUNCTION}));
  function();
  at::removeCallback(handle);
  return names;
}

TEST_F(AttentionSeen, AGrowingCacheIsReadWhereItLies) {
  torch::manual_seed(4);
  const torch::NoGradGuard no_grad;
  for (const std::string algebra : {"real", "quaternion", "octonion"}) {
    const Shape s{algebra, 12, 12, 2, 4};
    const int64_t n = algebra::get(algebra).n(), capacity = 40;
    const at::Tensor Q = heads(s, 12), K = heads(s, 12), V = heads(s, 12);
    const at::Tensor whole = ops::hypercomplex_attention(Q, K, V, {.algebra = algebra, .causal = true});
    // What is not written yet is read by nobody.
    at::Tensor keys = torch::full({2, capacity, n, 2, 4}, kNaN), values = keys.clone();
    for (int64_t t = 0; t < 12; t += t < 6 ? 1 : 3) {
      const int64_t count = t < 6 ? 1 : 3;
      keys.narrow(1, t, count).copy_(K.narrow(1, t, count));
      values.narrow(1, t, count).copy_(V.narrow(1, t, count));
      const at::Tensor now = Q.narrow(1, t, count), expected = whole.narrow(1, t, count);
      const AttentionOptions options{.algebra = algebra, .causal = true, .offset = t};
      const at::Tensor K_t = keys.narrow(1, 0, t + count), V_t = values.narrow(1, 0, t + count);
      at::Tensor got;
      const auto names = called([&] { got = ops::hypercomplex_attention(now, K_t, V_t, options); });
      expect_near({got}, {expected}, 1e-6);
      EXPECT_TRUE(
          torch::equal(got, ops::hypercomplex_attention(now, K_t.contiguous(), V_t.contiguous(), options)));
      if (n > 1) {
        EXPECT_EQ(names.count("aten::copy_") + names.count("aten::clone"), 0) << algebra;
        EXPECT_GE(names.count("quatrain::hypercomplex_attention_forward"), 1);
      }
      // The whole memory, with the place alone.
      expect_near({ops::hypercomplex_attention(now, keys, values, options)}, {expected}, 1e-6);
    }
  }
}

TEST_F(AttentionSeen, WhatIsHiddenFromAllMayHoldAnything) {
  torch::manual_seed(5);
  for (const std::string algebra : {"real", "quaternion"})
    for (const auto type : {torch::kFloat, torch::kDouble})
      for (const double value : {kNaN, kInfinity}) {
        const Shape s{algebra, 5, 20, 2, 3};
        const at::Tensor Q = heads(s, 5), K = heads(s, 20), V = heads(s, 20);
        const at::Tensor padding = torch::arange(20).unsqueeze(0) >= torch::tensor({{13}, {20}});
        at::Tensor nothing = padding.clone();
        nothing[0].fill_(true);
        const at::Tensor added =
            torch::zeros({2, 1, 1, 20}).masked_fill(padding.view({2, 1, 1, 20}), -kInfinity);
        const std::vector<AttentionOptions> all{
            {.algebra = algebra, .padding = padding},
            {.algebra = algebra, .padding = nothing},
            {.algebra = algebra, .mask = ~padding.view({2, 1, 1, 20})},
            {.algebra = algebra, .mask = added},
            {.algebra = algebra,
             .padding = padding,
             .mask = torch::randn({5, 20}),
             .causal = true,
             .offset = 9},
            {.algebra = algebra, .padding = padding, .causal = true, .offset = 15},
            {.algebra = algebra, .causal = true, .offset = 6}};
        for (size_t i = 0; i < all.size(); ++i) {
          SCOPED_TRACE(algebra + ", " + std::to_string(i));
          const at::Tensor seen = test::seen_keys(Q, K, all[i]).any(2).any(1).any(1);  // (B, S)
          const at::Tensor hidden = ~seen.view({2, 20, 1, 1, 1});
          ASSERT_TRUE(hidden.any().item<bool>());
          const auto soiled = leaves({Q, K.masked_fill(hidden, value), V.masked_fill(hidden, value)}, type);
          const auto clean = leaves({Q, K.masked_fill(hidden, 0), V.masked_fill(hidden, 0)}, type);
          const auto of = [&](const std::vector<at::Tensor>& t) {
            const at::Tensor out = ops::hypercomplex_attention(t[0], t[1], t[2], all[i]);
            std::vector<at::Tensor> results = gradients(t, out, torch::ones_like(out));
            results.push_back(out.detach());
            const auto [y, weights] = ops::hypercomplex_attention_with_weights(t[0], t[1], t[2], all[i]);
            results.push_back(y.detach());
            results.push_back(weights.detach());
            return results;
          };
          const auto got = of(soiled), expected = of(clean);
          for (size_t j = 0; j < got.size(); ++j) EXPECT_TRUE(torch::equal(got[j], expected[j])) << j;
        }
      }
}

TEST_F(AttentionSeen, AQueryWithoutKeysGetsZeros) {
  torch::manual_seed(6);
  for (const std::string algebra : {"real", "quaternion"}) {
    const Shape s{algebra, 6, 20, 2, 3};
    for (const auto type : {torch::kFloat, torch::kDouble}) {
      const auto inputs = leaves({heads(s, 6), heads(s, 20), heads(s, 20)}, type);
      at::Tensor mask = torch::ones({6, 20}, torch::kBool);
      mask[2] = false;
      const at::Tensor out =
          ops::hypercomplex_attention(inputs[0], inputs[1], inputs[2], {.algebra = algebra, .mask = mask});
      EXPECT_EQ(out.select(1, 2).abs().max().item<double>(), 0);
      const auto g = gradients(inputs, out, torch::ones_like(out));
      EXPECT_EQ(g[0].select(1, 2).abs().max().item<double>(), 0);
      // A gradient of that row alone reaches nothing.
      at::Tensor row = torch::zeros_like(out);
      row.select(1, 2).fill_(1);
      for (const at::Tensor& t : gradients(inputs,
                                           ops::hypercomplex_attention(inputs[0], inputs[1], inputs[2],
                                                                       {.algebra = algebra, .mask = mask}),
                                           row))
        EXPECT_EQ(t.abs().max().item<double>(), 0);
      // Before the first key: none at all.
      const AttentionOptions before{.algebra = algebra, .causal = true, .offset = -6};
      const auto [y, w] = ops::hypercomplex_attention_with_weights(inputs[0], inputs[1], inputs[2], before);
      EXPECT_EQ(y.abs().max().item<double>(), 0);
      EXPECT_EQ(w.sizes(), (std::vector<int64_t>{2, 2, algebra == "real" ? 1 : 4, 6, 20}));
      EXPECT_EQ(w.abs().max().item<double>(), 0);
      const at::Tensor none = ops::hypercomplex_attention(inputs[0], inputs[1], inputs[2], before);
      EXPECT_EQ(none.abs().max().item<double>(), 0);
      for (const at::Tensor& t : gradients(inputs, none, torch::ones_like(none)))
        EXPECT_EQ(t.abs().max().item<double>(), 0);
    }
  }
}

TEST_F(AttentionSeen, OneComponentIsTorchsAttention) {
  torch::manual_seed(7);
  const auto fresh = [](int64_t length) { return torch::randn({2, length, 1, 3, 8}, torch::kDouble); };
  const at::Tensor Q = fresh(6), K = fresh(9), V = fresh(9);
  const auto theirs = [&](const std::optional<at::Tensor>& mask, bool causal, std::optional<double> scale) {
    const auto cut = [](const at::Tensor& t) { return t.squeeze(2).transpose(1, 2); };
    return torch::scaled_dot_product_attention(cut(Q), cut(K), cut(V), mask, 0, causal, scale)
        .transpose(1, 2)
        .flatten(2);
  };
  const at::Tensor seen = torch::rand({2, 1, 6, 9}) < 0.8, added = torch::randn({3, 6, 9}, torch::kDouble);
  expect_near({ops::hypercomplex_attention(Q, K, V)}, {theirs({}, false, {})}, 1e-13);
  expect_near({ops::hypercomplex_attention(Q, K, V, {.causal = true})}, {theirs({}, true, {})}, 1e-13);
  expect_near({ops::hypercomplex_attention(Q, K, V, {.mask = seen, .scale = 0.2})},
              {theirs(seen, false, 0.2)}, 1e-13);
  expect_near({ops::hypercomplex_attention(Q, K, V, {.mask = added})}, {theirs(added, false, {})}, 1e-13);
}

TEST_F(AttentionSeen, SecondDerivatives) {
  torch::manual_seed(8);
  const Shape s{"quaternion", 5, 7, 2, 3};
  const at::Tensor Q = heads(s, 5), K = heads(s, 7), V = heads(s, 7), grad = torch::randn({2, 5, 24});
  const auto all = masks(s);
  for (size_t mask = 0; mask < all.size(); ++mask) {
    SCOPED_TRACE(mask);
    const AttentionOptions options{.algebra = "quaternion",
                                   .mask = all[mask],
                                   .causal = true,
                                   .offset = 1,
                                   .scale = 0.5,
                                   .order = ProductOrder::key_query};
    const auto of = [&](at::ScalarType type, const auto& attend) {
      auto t = leaves({Q, K, V, grad}, type);
      const auto first = torch::autograd::grad({attend(t)}, {t[0], t[1], t[2]}, {t[3]}, true, true);
      const at::Tensor norm = first[0].square().sum() + first[1].square().sum() + first[2].square().sum();
      return torch::autograd::grad({norm}, t);
    };
    const auto got = of(torch::kFloat, [&](const std::vector<at::Tensor>& t) {
      return ops::hypercomplex_attention(t[0], t[1], t[2], options);
    });
    const auto expected = of(
        torch::kDouble, [&](const std::vector<at::Tensor>& t) { return defined(t[0], t[1], t[2], options); });
    expect_near(got, expected, 1e-4);
  }
}

TEST_F(AttentionSeen, AMaskThatLearns) {
  torch::manual_seed(9);
  for (const std::string algebra : {"real", "quaternion"})
    for (const at::Tensor& start : {torch::randn({2, 1, 5, 7}), torch::randn({2, 5, 1}), torch::randn({})}) {
      const Shape s{algebra, 5, 7, 2, 3};
      const at::Tensor Q = heads(s, 5), K = heads(s, 7), V = heads(s, 7);
      const at::Tensor padding = torch::rand({2, 7}) < 0.3;
      const auto of = [&](at::ScalarType type, const auto& attend) {
        auto t = leaves({Q, K, V, start}, type);
        AttentionOptions options{.algebra = algebra, .padding = padding, .mask = t[3]};
        const at::Tensor norm = attend(t, options).square().sum();
        auto first = torch::autograd::grad({norm}, t, {}, true, true);
        const at::Tensor again = first[3].square().sum() + first[0].square().sum();
        for (const at::Tensor& g : torch::autograd::grad({again}, t, {}, {}, false, true))
          first.push_back(g.defined() ? g : torch::zeros({1}, type));
        return first;
      };
      const auto operators = [](const std::vector<at::Tensor>& t, const AttentionOptions& o) {
        return ops::hypercomplex_attention(t[0], t[1], t[2], o);
      };
      const auto recorded = [](const std::vector<at::Tensor>& t, const AttentionOptions& o) {
        return ops::attention_forward(seeded(o), t[0], t[1], t[2]);
      };
      const auto expected =
          of(torch::kDouble, [](const std::vector<at::Tensor>& t, const AttentionOptions& o) {
            return defined(t[0], t[1], t[2], o);
          });
      expect_near(of(torch::kDouble, operators), expected, 1e-10);
      expect_near(of(torch::kFloat, operators), expected, 1e-3);
      expect_near(of(torch::kFloat, recorded), expected, 1e-3);
    }
}

TEST_F(AttentionSeen, PlacesOfAnySize) {
  torch::manual_seed(10);
  const Shape s{"quaternion", 5, 9, 2, 3};
  const at::Tensor Q = heads(s, 5), K = heads(s, 9), V = heads(s, 9);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max(), kLeast = std::numeric_limits<int64_t>::min();
  for (const int64_t offset : {kLeast, kLeast + 3, int64_t{-7}, int64_t{8}, kMost - 3, kMost}) {
    SCOPED_TRACE(offset);
    const AttentionOptions options{.algebra = "quaternion", .causal = true, .offset = offset};
    expect_near({ops::hypercomplex_attention(Q, K, V, options)}, {defined(Q, K, V, options)}, 1e-5);
    expect_near({ops::attention_forward(seeded(options), Q, K, V)}, {defined(Q, K, V, options)}, 1e-5);
    expect_near({ops::composed::attention(seeded(options), Q, K, V)}, {defined(Q, K, V, options)}, 1e-5);
  }
}

/// MiB that `work` takes beside what there is; nothing where the system does not tell.
std::optional<int64_t> peak_of(const std::function<void()>& work) {
  const auto status = [](const std::string& key) -> std::optional<int64_t> {
    std::ifstream file("/proc/self/status");
    for (std::string line; std::getline(file, line);)
      if (line.starts_with(key)) return std::stoll(line.substr(key.size())) / 1024;
    return {};
  };
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak begins anew
  const auto before = status("VmRSS:"), peak = status("VmHWM:");
  if (!before || !peak || *peak > *before + 64) return {};
  work();
  return *status("VmHWM:") - *before;
}

// A mask of 12,000 x 12,000 would be 144 MB of bools, and four times that in use.
TEST_F(AttentionSeen, LongCausalTextsWithPaddingTakeNoSquare) {
  const torch::NoGradGuard no_grad;
  constexpr int64_t kLength = 12000, kWords = 11000;
  const at::Tensor x = torch::randn({1, kLength, 4, 1, 2});
  const at::Tensor padding = torch::arange(kLength).ge(kWords).unsqueeze(0);
  for (const auto& [algebra, components] :
       std::vector<std::pair<std::string, int64_t>>{{"real", 1}, {"real", 4}, {"quaternion", 4}}) {
    SCOPED_TRACE(algebra + " of " + std::to_string(components));
    const at::Tensor heads = x.reshape({1, kLength, components, 1, 8 / components});
    const AttentionOptions options{.algebra = algebra, .padding = padding, .causal = true};
    at::Tensor result;
    const auto peak = peak_of([&] { result = ops::hypercomplex_attention(heads, heads, heads, options); });
    if (!peak) GTEST_SKIP() << "this system does not tell the peak of a process's memory";
    EXPECT_LT(*peak, 100);
    // The last words of a text see all of it.
    const at::Tensor some = heads.narrow(1, 0, kWords);
    const at::Tensor last =
        ops::hypercomplex_attention(some.narrow(1, kWords - 3, 3), some, some,
                                    {.algebra = algebra, .causal = true, .offset = kWords - 3});
    EXPECT_LE(relative_error(result.narrow(1, kWords - 3, 3), last), 1e-5);
  }
}

TEST_F(AttentionSeen, Refusals) {
  using testing::HasSubstr;
  const Shape s{"quaternion", 5, 9, 2, 3};
  const at::Tensor Q = heads(s, 5), K = heads(s, 9);
  const auto message = [&](const AttentionOptions& options) -> std::string {
    try {
      ops::hypercomplex_attention(Q, K, K, options);
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    }
    return "";
  };
  const auto of = [](const at::Tensor& mask) {
    return AttentionOptions{.algebra = "quaternion", .mask = mask};
  };
  EXPECT_THAT(message(of(torch::zeros({9, 5}))),
              HasSubstr("broadcast to (batch, heads, queries, keys) = (2, 2, 5, 9), got Float [9, 5]"));
  EXPECT_THAT(message(of(torch::zeros({1, 2, 2, 5, 9}))), HasSubstr("got Float [1, 2, 2, 5, 9]"));
  EXPECT_THAT(message(of(torch::zeros({5, 9}, torch::kLong))), HasSubstr("bool or floating point"));
  EXPECT_THAT(message(of(torch::zeros({5, 9}).to_sparse())), HasSubstr("mask must be dense"));
  EXPECT_THAT(message({.algebra = "quaternion", .offset = 3}), HasSubstr("got 3 without it"));
  EXPECT_THAT(message({.algebra = "quaternion", .scale = kNaN}), HasSubstr("scale must be finite, got nan"));
  EXPECT_THROW(ops::parse_product_order("KQ"), std::invalid_argument);
  EXPECT_EQ(ops::parse_product_order(ops::name(ProductOrder::key_query)), ProductOrder::key_query);
  EXPECT_THROW(ops::hypercomplex_attention(Q.to_sparse(), K, K), c10::Error);
  EXPECT_THROW(ops::hypercomplex_attention(Q, K, K.to(torch::kDouble)), c10::Error);
  EXPECT_THROW(ops::attention_backward(seeded({.algebra = "quaternion"}), torch::randn({2, 24, 5}), Q, K, K),
               c10::Error);
  const at::Tensor x = torch::randn({2, 3, 24});
  for (const int64_t many : {int64_t{1} << 32, int64_t{1} << 62, int64_t{25}})
    EXPECT_THROW(ops::cut_heads(x, many, many, many), c10::Error);
}

}  // namespace
}  // namespace quatrain
