// The operator `linear` against the float64 reference: every algebra, way, type, shape; derivatives; errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <ATen/autocast_mode.h>

#include "ops/reference.h"

namespace quatrain {
namespace {

using ops::Product;
using ops::Way;
using test::all_ways;
using test::expanded;
using test::relative_error;
using test::table_of;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "no error";
}

struct Problem {
  at::Tensor x, S, bias;
};

Problem make(int64_t n, int64_t rows, int64_t m, int64_t p, torch::Dtype dtype = torch::kDouble) {
  torch::manual_seed(7);
  return {torch::randn({rows, n * p}, dtype), torch::randn({n, m, p}, dtype), torch::randn({n * m}, dtype)};
}

/// A learned copy of an algebra, with its factors.
Product learned(const std::string& algebra) {
  const auto& a = algebra::get(algebra);
  const auto& f = a.factors();
  const auto factor = [&](const std::vector<double>& values) {
    return torch::from_blob(const_cast<double*>(values.data()), {f.n, f.rank}, torch::kDouble).clone();
  };
  return {"learned", table_of(algebra), {factor(f.U), factor(f.V), factor(f.W)}};
}

TEST(Linear, EveryAlgebraAndWayAgreesWithItsTable) {
  for (const std::string& name : algebra::names()) {
    const int64_t n = algebra::get(name).n();
    for (const auto& [dtype, tolerance] : {std::pair{torch::kDouble, 1e-12}, {torch::kFloat, 1e-5}}) {
      const Problem t = make(n, 5, 3, 2, dtype);
      const at::Tensor H = expanded(table_of(name), t.S);
      const at::Tensor y = torch::linear(t.x.to(torch::kDouble), H, t.bias.to(torch::kDouble));
      const at::Tensor grad = torch::randn_like(y), g = grad.to(dtype);
      const at::Tensor dx = grad.matmul(H);
      for (const Way way : all_ways()) {
        SCOPED_TRACE(name + ", " + ops::name(way) + ", " + c10::toString(dtype));
        EXPECT_LT(relative_error(ops::linear(t.x, t.S, t.bias, {name, {}, {}}, way), y), tolerance);
        const auto [got_x, got_S, got_A] =
            ops::linear_backward(g, t.x, t.S, {name, {}, {}}, way, {}, {true, true, false});
        EXPECT_LT(relative_error(got_x, dx), tolerance);
        // dS is linear in S's direction D: <dS, D> = <grad, D's layer at x>.
        const at::Tensor D = torch::randn_like(t.S);
        const double expected =
            (grad * t.x.to(torch::kDouble).matmul(expanded(table_of(name), D).t())).sum().item<double>();
        const double got = (got_S.to(torch::kDouble) * D.to(torch::kDouble)).sum().item<double>();
        EXPECT_NEAR(got, expected, 10 * tolerance * (got_S.norm() * D.norm()).item<double>());
        EXPECT_FALSE(got_A.defined());
      }
      EXPECT_LT(relative_error(ops::materialise(t.S, {name, {}, {}}), H), tolerance);
    }
  }
}

TEST(Linear, LowPrecisionTypes) {
  for (const auto dtype : {torch::kBFloat16, torch::kHalf}) {
    const Problem t = make(4, 33, 16, 24, dtype);
    const at::Tensor y = torch::linear(t.x.to(torch::kDouble), expanded(table_of("quaternion"), t.S),
                                       t.bias.to(torch::kDouble));
    for (const Way way : all_ways()) {
      const at::Tensor got = ops::linear(t.x, t.S, t.bias, {"quaternion", {}, {}}, way);
      EXPECT_EQ(got.scalar_type(), dtype);
      EXPECT_LT(relative_error(got, y), dtype == torch::kHalf ? 3e-3 : 2e-2) << ops::name(way);
    }
  }
}

TEST(Linear, LargeHalvesAreFiniteWhereTheRealLayersAre) {
  torch::manual_seed(5);
  for (const char* name : {"quaternion", "octonion"}) {
    const at::Tensor table = table_of(name);
    const int64_t n = table.size(0);
    const at::Tensor S = (torch::randn({n, 256 / n, 256 / n}) / 16).to(torch::kHalf),
                     x = (torch::randn({256, 256}) * 12000).clamp(-65000, 65000).to(torch::kHalf);
    const at::Tensor y =
        torch::linear(x.to(torch::kFloat), expanded(table, S.to(torch::kDouble)).to(torch::kFloat));
    const at::Tensor got = ops::linear(x, S, {}, {name, {}, {}});
    EXPECT_TRUE(got.isfinite().logical_or((y.abs() > 65000)).all().item<bool>()) << name;
    EXPECT_LT(relative_error(got.clamp(-65000, 65000), y.clamp(-65000, 65000).to(torch::kDouble)), 1e-3)
        << name;
  }
}

TEST(Linear, AnyLeadingShapeStridesAndSizes) {
  torch::manual_seed(3);
  const at::Tensor S = torch::randn({4, 6, 5}, torch::kDouble);
  const at::Tensor H = expanded(table_of("quaternion"), S);
  const auto check = [&](const at::Tensor& x, const at::Tensor& weight) {
    for (const Way way : all_ways()) {
      const at::Tensor y = ops::linear(x, weight, {}, {"quaternion", {}, {}}, way);
      const at::Tensor expected = x.matmul(H.t());
      ASSERT_EQ(y.sizes(), expected.sizes());
      EXPECT_TRUE(y.is_contiguous());
      if (y.numel() > 0) {
        EXPECT_LT(relative_error(y, expected), 1e-12) << ops::name(way) << x.sizes() << x.strides();
      }
      const auto [dx, dS, dA] = ops::linear_backward(torch::ones_like(y), x, weight, {"quaternion", {}, {}},
                                                     way, {}, {true, true, false});
      EXPECT_EQ(dx.sizes(), x.sizes());
      EXPECT_EQ(dS.sizes(), weight.sizes());
      if (y.numel() == 0) {
        EXPECT_EQ(dS.abs().sum().item<double>(), 0);
      }
    }
  };
  check(torch::randn({20}, torch::kDouble), S);
  check(torch::randn({2, 3, 4, 20}, torch::kDouble), S);
  check(torch::randn({20, 7}, torch::kDouble).t(), S);
  check(torch::randn({5, 40}, torch::kDouble).slice(1, 0, 40, 2), S);
  check(torch::randn({1, 20}, torch::kDouble).expand({6, 20}), S);
  check(torch::randn({0, 20}, torch::kDouble), S);
  check(torch::randn({3, 0, 20}, torch::kDouble), S);
  check(torch::randn({3, 20}, torch::kDouble), S.transpose(1, 2).contiguous().transpose(1, 2));
  for (int64_t rows = 0; rows <= 33; ++rows) check(torch::randn({rows, 20}, torch::kDouble), S);
  for (const Way way : all_ways()) {  // no inputs, no outputs
    EXPECT_EQ(ops::linear(torch::randn({3, 0}), torch::randn({4, 2, 0}), torch::ones({8}),
                          {"quaternion", {}, {}}, way)
                  .sum()
                  .item<float>(),
              24);
    EXPECT_EQ(
        ops::linear(torch::randn({3, 8}), torch::randn({4, 0, 2}), {}, {"quaternion", {}, {}}, way).sizes(),
        (at::IntArrayRef{3, 0}));
  }
}

// Rows of an expanded tensor, and windows over one row: libraries of dense products take no rows that
// overlap.
TEST(Linear, RowsMayOverlap) {
  torch::manual_seed(4);
  const at::NoGradGuard no_grad;
  for (const char* algebra : {"real", "quaternion"}) {
    const int64_t n = algebra == std::string("real") ? 1 : 4;
    const at::Tensor S = torch::randn({n, 64 / n, 64 / n});
    for (const at::Tensor& x : {torch::randn({1, 64}).expand({9, 64}), torch::randn({200}).unfold(0, 64, 16),
                                torch::randn({64}).expand({2, 40, 64})})
      for (const Way way : all_ways())
        for (const bool constant : {false, true}) {
          const ops::Product product{algebra, {}, {}};
          const at::Tensor y = ops::linear(x, S, {}, product, way, {}, constant);
          const at::Tensor expected = ops::linear(x.to(torch::kDouble), S.to(torch::kDouble), {}, product);
          EXPECT_LT(relative_error(y, expected), 1e-6) << algebra << " " << ops::name(way) << x.strides();
        }
  }
}

TEST(Linear, RealAlgebraIsTheRealLayer) {
  const Problem t = make(1, 9, 7, 6, torch::kFloat);
  for (const Way way : all_ways())
    EXPECT_TRUE(torch::allclose(ops::linear(t.x, t.S, t.bias, {"real", {}, {}}, way),
                                torch::linear(t.x, t.S[0], t.bias), 1e-6, 1e-6));
}

TEST(Linear, LearnedTensorInEveryWay) {
  for (const std::string start : {"complex", "quaternion", "octonion", "cyclic(3)"}) {
    const Product product = learned(start);
    const Problem t = make(product.A.size(0), 6, 3, 4);
    const at::Tensor y = t.x.matmul(expanded(product.A, t.S).t()) + t.bias;
    const at::Tensor g = torch::randn_like(y);
    for (const Way way : all_ways()) {
      SCOPED_TRACE(start + ", " + ops::name(way));
      EXPECT_LT(relative_error(ops::linear(t.x, t.S, t.bias, product, way), y), 1e-12);
      const auto [dx, dS, dA] = ops::linear_backward(g, t.x, t.S, product, way, {}, {true, true, true});
      const at::Tensor D = torch::randn_like(product.A);
      EXPECT_NEAR((dA * D).sum().item<double>(), (g * t.x.matmul(expanded(D, t.S).t())).sum().item<double>(),
                  1e-9);
    }
  }
}

TEST(Linear, GradientsOfAnyOrder) {
  torch::manual_seed(11);
  const auto options = torch::TensorOptions().dtype(torch::kDouble).requires_grad(true);
  for (const bool learn : {false, true})
    for (const Way way : all_ways()) {
      SCOPED_TRACE(std::string(learn ? "learned, " : "fixed, ") + ops::name(way));
      at::Tensor x = torch::randn({3, 2, 8}, options), S = torch::randn({4, 3, 2}, options),
                 b = torch::randn({12}, options);
      Product product = learn ? learned("quaternion") : Product{"quaternion", {}, {}};
      if (learn) product.A.requires_grad_();
      const auto f = [&](const torch::autograd::variable_list& v) {
        const Product p{product.algebra, learn ? v[3] : at::Tensor(), product.factors};
        return ops::linear(v[0], v[1], v[2], p, way).tanh();
      };
      const auto literal = [&](const torch::autograd::variable_list& v) {
        const at::Tensor A = learn ? v[3] : table_of("quaternion");
        return torch::linear(v[0], torch::einsum("iab,ipq->apbq", {A, v[1]}).reshape({12, 8}), v[2]).tanh();
      };
      torch::autograd::variable_list inputs{x, S, b};
      if (learn) inputs.push_back(product.A);
      // Three orders, each along a fixed direction, against autograd through the literal H.
      std::vector<torch::autograd::variable_list> directions;
      for (int order = 0; order < 3; ++order) {
        directions.emplace_back();
        for (const at::Tensor& v : inputs) directions.back().push_back(torch::randn_like(v.detach()));
      }
      const auto derivatives = [&](const auto& function) {
        std::vector<torch::autograd::variable_list> orders;
        at::Tensor scalar = function(inputs).pow(2).sum();
        for (const auto& direction : directions) {
          auto grads = torch::autograd::grad({scalar}, inputs, {}, true, true);
          orders.push_back(grads);
          scalar = torch::zeros({}, torch::kDouble);
          for (size_t i = 0; i < grads.size(); ++i) scalar = scalar + (grads[i] * direction[i]).sum();
        }
        return orders;
      };
      const auto got = derivatives(f), expected = derivatives(literal);
      for (size_t order = 0; order < expected.size(); ++order)
        for (size_t i = 0; i < inputs.size(); ++i)
          EXPECT_LT(relative_error(got[order][i], expected[order][i]), 1e-10)
              << "order " << order + 1 << ", input " << i;
    }
}

TEST(Linear, OnlyWantedGradientsAreComputed) {
  const Problem t = make(4, 3, 2, 2);
  const auto [dx, dS, dA] =
      ops::linear_backward(torch::ones({3, 8}, torch::kDouble), t.x, t.S, {"quaternion", {}, {}},
                           Way::factored, {}, {true, false, false});
  EXPECT_TRUE(dx.defined());
  EXPECT_FALSE(dS.defined());
  EXPECT_FALSE(dA.defined());
  at::Tensor S = t.S.clone().requires_grad_();
  ops::linear(t.x, S, {}, {"quaternion", {}, {}}).sum().backward();
  EXPECT_TRUE(S.grad().defined());
}

// Of many rows and much wider outputs, whose gradients the sums over rows do not transpose.
TEST(Linear, GradientsOfWideOutputs) {
  for (const char* algebra : {"quaternion", "complex", "learned", "factored"})
    for (const auto& [m, p, rows] : {std::tuple{65, 16, 1100}, {160, 7, 515}, {70, 1, 77}, {200, 48, 513}}) {
      SCOPED_TRACE(c10::str(algebra, ", ", p, " to ", m, ", ", rows, " rows"));
      torch::manual_seed(7);
      const int64_t n = algebra == std::string("complex") ? 2 : 4;
      const bool has_A = algebra == std::string("learned") || algebra == std::string("factored");
      const auto f64 = torch::kDouble;
      const at::Tensor x = torch::randn({rows, n * p}, f64), S = torch::randn({n, m, p}, f64),
                       grad = torch::randn({rows, n * m}, f64),
                       A = algebra == std::string("factored") ? torch::randn({3, n, 7}, f64)
                                                              : torch::randn({n, n, n}, f64);
      const auto gradients = [&](torch::Dtype type, bool reference) {
        const at::Tensor S_ = S.to(type).requires_grad_(), A_ = A.to(type).requires_grad_();
        const at::Tensor table = !has_A ? table_of(algebra)
                                 : algebra == std::string("learned")
                                     ? A_
                                     : torch::einsum("ir,br,ar->iab", {A_[0], A_[1], A_[2]});
        const Product product{algebra, has_A ? A_ : at::Tensor(), {}};
        const at::Tensor y =
            reference ? torch::linear(x, torch::einsum("iab,imp->ambp", {table, S_}).reshape({n * m, n * p}))
                      : ops::linear(x.to(type), S_, {}, product, Way::factored);
        return torch::autograd::grad({y}, has_A ? std::vector{S_, A_} : std::vector{S_},
                                     {grad.to(y.scalar_type())});
      };
      const auto expected = gradients(f64, true);
      for (const auto& [type, tolerance] : {std::pair{torch::kFloat, 1e-5}, {torch::kBFloat16, 2e-2}}) {
        const auto got = gradients(type, false);
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_LT(relative_error(got[i], expected[i]), tolerance) << type << i;
      }
    }
}

TEST(Linear, ComputeTypeAndAutocast) {
  const Problem t = make(4, 6, 8, 4, torch::kFloat);
  at::Tensor S = t.S.clone().requires_grad_();
  const at::Tensor y = ops::linear(t.x, S, t.bias, {"quaternion", {}, {}}, Way::automatic, torch::kBFloat16);
  EXPECT_EQ(y.scalar_type(), torch::kBFloat16);
  y.sum().backward();
  EXPECT_EQ(S.grad().scalar_type(), torch::kFloat);

  at::autocast::set_autocast_enabled(at::kCPU, true);
  at::autocast::set_autocast_dtype(at::kCPU, torch::kBFloat16);
  const at::Tensor cast = ops::linear(t.x, t.S, t.bias, {"quaternion", {}, {}});
  const at::Tensor kept =
      ops::linear(t.x.to(torch::kDouble), t.S.to(torch::kDouble), {}, {"quaternion", {}, {}});
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_EQ(cast.scalar_type(), torch::kBFloat16);
  EXPECT_TRUE(torch::equal(cast, y.detach()));
  EXPECT_EQ(kept.scalar_type(), torch::kDouble);
}

TEST(Linear, MetaTensorsGiveShapes) {
  const auto meta = torch::TensorOptions().device(torch::kMeta);
  const at::Tensor y =
      ops::linear(torch::empty({2, 5, 8}, meta), torch::empty({4, 3, 2}, meta), {}, {"quaternion", {}, {}});
  EXPECT_EQ(y.sizes(), (at::IntArrayRef{2, 5, 12}));
  EXPECT_TRUE(y.is_meta());
}

TEST(Linear, WaysAreForced) {
  const Problem t = make(4, 3, 2, 2);
  EXPECT_EQ(ops::parse_way("mixed"), Way::mixed);
  // A learned tensor without factors cannot be factored: so we see which way was taken.
  const Product bare{"learned", table_of("quaternion"), {}};
  EXPECT_NO_THROW(ops::linear(t.x, t.S, {}, bare));
  EXPECT_THAT(message_of([&] { ops::linear(t.x, t.S, {}, bare, Way::factored); }),
              testing::HasSubstr("needs factors"));
  {
    const ops::WayGuard guard(Way::factored);
    EXPECT_THAT(message_of([&] { ops::linear(t.x, t.S, {}, bare); }), testing::HasSubstr("needs factors"));
    EXPECT_NO_THROW(ops::linear(t.x, t.S, {}, bare, Way::mixed));  // an argument wins
    const ops::WayGuard inner(Way::materialised);
    EXPECT_NO_THROW(ops::linear(t.x, t.S, {}, bare));
  }
  EXPECT_NO_THROW(ops::linear(t.x, t.S, {}, bare));
}

TEST(Linear, OfNoRowsNeedsNoFactors) {
  for (const auto dtype : {torch::kFloat, torch::kDouble}) {
    const auto options = torch::TensorOptions(dtype).requires_grad(true);
    const at::Tensor x = torch::randn({0, 5, 8}, options), S = torch::randn({4, 3, 2}, options),
                     A = torch::randn({4, 4, 4}, options);
    const at::Tensor y = ops::linear(x, S, {}, {"learned", A, {}}, Way::factored);
    EXPECT_EQ(y.sizes(), (std::vector<int64_t>{0, 5, 12}));
    y.sum().backward();
    EXPECT_TRUE(S.grad().equal(torch::zeros_like(S)));
    EXPECT_TRUE(A.grad().equal(torch::zeros_like(A)));
  }
}

TEST(Linear, ErrorsAreOneClearSentence) {
  const Problem t = make(4, 3, 2, 2);
  const auto error = [&](const at::Tensor& x, const at::Tensor& S, const at::Tensor& bias,
                         const Product& product) {
    return message_of([&] { ops::linear(x, S, bias, product); });
  };
  const Product q{"quaternion", {}, {}};
  EXPECT_THAT(error(torch::randn({3, 9}, torch::kDouble), t.S, {}, q),
              testing::HasSubstr("the last axis of x must be in_features = 8 (n * S.size(2)), got 9"));
  EXPECT_THAT(error(t.x, torch::randn({3, 2, 2}, torch::kDouble), {}, q),
              testing::HasSubstr("S must have 4 blocks"));
  EXPECT_THAT(error(t.x, t.S, torch::randn({7}, torch::kDouble), q),
              testing::HasSubstr("out_features = 8 values"));
  EXPECT_THAT(error(t.x.to(torch::kFloat), t.S, {}, q), testing::HasSubstr("x is Float, S Double"));
  EXPECT_THAT(error(t.x, t.S, {}, {"quaternoin", {}, {}}), testing::HasSubstr("quaternion"));
  EXPECT_THAT(error(t.x, t.S, {}, {"learned", {}, {}}),
              testing::HasSubstr("A goes with algebra = 'learned'"));
  EXPECT_THAT(error(t.x, t.S, {}, {"quaternion", table_of("quaternion"), {}}), testing::HasSubstr("with A"));
  EXPECT_THAT(error(t.x, t.S, {}, {"learned", torch::randn({4, 4}, torch::kDouble), {}}),
              testing::HasSubstr("(n, n, n)"));
  EXPECT_THAT(error(t.x.to(torch::kLong), t.S, {}, q), testing::HasSubstr("floating"));
  EXPECT_THAT([] { ops::parse_way("fast"); },
              testing::ThrowsMessage<std::invalid_argument>(
                  testing::HasSubstr("must be one of auto, factored, mixed")));
}

TEST(Linear, ThreadsAgree) {
  const Problem t = make(4, 300, 64, 64, torch::kFloat);
  const int before = torch::get_num_threads();
  std::vector<at::Tensor> results;
  for (const int threads : {1, 2}) {
    torch::set_num_threads(threads);
    for (const Way way : all_ways())
      results.push_back(ops::linear(t.x, t.S, t.bias, {"quaternion", {}, {}}, way));
  }
  torch::set_num_threads(before);
  for (const at::Tensor& y : results) EXPECT_LT(relative_error(y, results[0]), 1e-5);
}

TEST(Linear, NoOutputsOrInputsHaveGradientsToo) {
  for (const bool trained : {false, true})
    for (const auto& [m, p] : {std::pair<int64_t, int64_t>{0, 2}, {2, 0}, {0, 0}}) {
      SCOPED_TRACE("m = " + std::to_string(m) + ", p = " + std::to_string(p));
      const Product product = trained ? Product{"factored", torch::randn({3, 4, 5}).requires_grad_(), {}}
                                      : Product{"quaternion", {}, {}};
      std::vector<at::Tensor> inputs{torch::randn({2, 3, 4 * p}), torch::randn({4, m, p}),
                                     torch::randn({4 * m})};
      for (at::Tensor& t : inputs) t.requires_grad_();
      if (trained) inputs.push_back(product.A);
      const at::Tensor y = ops::linear(inputs[0], inputs[1], inputs[2], product);
      // Differentiable gradients of trained factors take the traced form.
      const auto grads =
          torch::autograd::grad({y}, inputs, {torch::ones_like(y)}, /*retain_graph=*/true, trained);
      for (size_t i = 0; i < inputs.size(); ++i) EXPECT_EQ(grads[i].sizes(), inputs[i].sizes()) << i;
      EXPECT_TRUE(torch::equal(grads[2], torch::full({4 * m}, 6.0)));
      EXPECT_TRUE(torch::equal(grads[1], torch::zeros_like(inputs[1])));
    }
}

}  // namespace
}  // namespace quatrain
