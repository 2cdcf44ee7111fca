#include "quatrain/nn/init.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include <cmath>

#include "nn/reference.h"
#include "quatrain/nn/attention.h"

namespace quatrain {
namespace {

constexpr int64_t kIn = 480, kOut = 240;

double mean_square(const at::Tensor& t) {
  return t.detach().to(torch::kDouble).square().mean().item<double>();
}

/// Var(H) of a fresh layer over that of the real layer of the same size.
double relative_variance(const std::string& algebra, nn::Initialiser initialiser, bool he) {
  nn::Linear layer(nn::LinearOptions(kIn, kOut).algebra(algebra).initialiser(initialiser).bias(false));
  return mean_square(layer->matrix()) / (he ? 2.0 / kIn : 2.0 / (kIn + kOut));
}

TEST(NnInit, MatrixHasTheVarianceOfTheRealLayer) {
  torch::manual_seed(0);
  for (const char* algebra : {"real",
                              "complex",
                              "quaternion",
                              "octonion",
                              "dual",
                              "split_quaternion",
                              "tessarine",
                              "dual_quaternion",
                              "clifford(2,1)",
                              "cyclic(5)",
                              "phm(2)",
                              "phm(3)",
                              "phm(4)",
                              "phm(8)",
                              "phm(quaternion)",
                              "phm(identity(4))",
                              "wkp(4)",
                              "phm(4, trained_rank=3)",
                              "phm(2, trained_rank=9)",
                              "phm(quaternion, trained_rank=8)"}) {
    EXPECT_NEAR(relative_variance(algebra, nn::Initialiser::glorot, false), 1, 0.03) << algebra;
    EXPECT_NEAR(relative_variance(algebra, nn::Initialiser::he, true), 1, 0.03) << algebra;
    EXPECT_NEAR(relative_variance(algebra, nn::Initialiser::lecun, true), 0.5, 0.03) << algebra;
    EXPECT_NEAR(relative_variance(algebra, nn::Initialiser::polar, false), 1, 0.03) << algebra;
    EXPECT_NEAR(relative_variance(algebra, nn::Initialiser::polar_he, true), 1, 0.03) << algebra;
  }
}

// Q, K and V in one layer are drawn as three layers would be, not as one that is three times as wide.
TEST(NnInit, PackedMapsAreDrawnWithTheFansOfOne) {
  torch::manual_seed(4);
  for (const char* algebra : {"real", "quaternion", "phm(4)"})
    for (const auto initialiser : {nn::Initialiser::glorot, nn::Initialiser::polar}) {
      nn::MultiheadAttention packed(
          nn::MultiheadAttentionOptions(kOut, 2).algebra(algebra).initialiser(initialiser).packed(true));
      EXPECT_NEAR(mean_square(packed->packed->matrix()) * kOut, 1, 0.03) << algebra;
      EXPECT_NEAR(mean_square(packed->output->matrix()) * kOut, 1, 0.05) << algebra;
    }
  const nn::Fans fans = nn::real_fans(torch::empty({4, 12, 5}), 3);
  EXPECT_EQ(fans.in, 20);
  EXPECT_EQ(fans.out, 16);
}

TEST(NnInit, EveryDrawOfARandomStructureKeepsTheVarianceOfEveryBlock) {
  torch::manual_seed(1);
  for (int draw = 0; draw < 20; ++draw) {
    nn::Linear layer(nn::LinearOptions(kIn, kOut).algebra("phm(2)").bias(false));
    const at::Tensor blocks = layer->matrix().detach().view({2, kOut / 2, 2, kIn / 2});
    for (int a = 0; a < 2; ++a)
      for (int b = 0; b < 2; ++b)
        EXPECT_NEAR(mean_square(blocks.select(0, a).select(1, b)) * (kIn + kOut) / 2, 1, 0.06);
    EXPECT_TRUE(torch::allclose(layer->A.norm(2, at::IntArrayRef{0}), torch::ones({2, 2})));
  }
}

/// Correlations of |component| pairs' signs and sizes: E[a b] / sqrt(E[a^2] E[b^2]).
double correlation(const at::Tensor& a, const at::Tensor& b) {
  return (a * b).mean().item<double>() / std::sqrt(mean_square(a) * mean_square(b));
}

TEST(NnInit, PolarMoments) {
  torch::manual_seed(2);
  const at::Tensor S = torch::empty({4, 256, 512}, torch::kDouble);
  for (const bool he : {false, true}) {
    const double sigma2 = 1.0 / (2 * (he ? 512 : 512 + 256));  // QRNN's, in quaternions
    nn::polar_(S, he);
    EXPECT_NEAR(S.square().sum(0).mean().item<double>() / (4 * sigma2), 1, 0.01);
    for (int c = 0; c < 4; ++c) EXPECT_NEAR(mean_square(S[c]) / sigma2, 1, 0.02);
    EXPECT_NEAR(correlation(S[1], S[2]), 0, 0.02);

    nn::polar_paper_(S, he);
    EXPECT_NEAR(S.square().sum(0).mean().item<double>() / (sigma2 / 3), 1, 0.01);
    EXPECT_NEAR(mean_square(S[0]) / (sigma2 / 6), 1, 0.02);
    for (int c = 1; c < 4; ++c) EXPECT_NEAR(mean_square(S[c]) / (sigma2 / 18), 1, 0.02);
    EXPECT_NEAR(correlation(S[1], S[2]), 0.71, 0.02);
    EXPECT_NEAR(correlation(S[2], S[3]), 0.71, 0.02);
    EXPECT_NEAR(correlation(S[0], S[1]), 0, 0.02);
  }
}

TEST(NnInit, PaperAtOneComponentHasTheSameSizeAComponent) {
  torch::manual_seed(3);
  const at::Tensor S = torch::empty({1, 512, 512}, torch::kDouble);
  nn::polar_paper_(S);
  EXPECT_NEAR(mean_square(S) * 6 * (512 + 512), 1, 0.02);
}

TEST(NnInit, ReceptiveFieldCounts) {
  const nn::Fans fans = nn::real_fans(torch::empty({4, 8, 16, 3, 3}));
  EXPECT_EQ(fans.in, 4 * 16 * 9);
  EXPECT_EQ(fans.out, 4 * 8 * 9);
}

TEST(NnInit, Structures) {
  const at::Tensor A = torch::empty({4, 4, 4}, torch::kDouble);
  nn::table_structure_(A, "quaternion");
  EXPECT_TRUE(torch::equal(A, test::table_of("quaternion")));
  EXPECT_EQ(nn::structure_power(A), 1);
  nn::identity_structure_(A);
  EXPECT_TRUE(torch::equal(A[0], torch::eye(4, torch::kDouble)));
  EXPECT_EQ(A.slice(0, 1).abs().sum().item<double>(), 0);
  EXPECT_EQ(nn::structure_power(A), 0.25);
  EXPECT_EQ(nn::structure_power("dual"), 0.75);
  EXPECT_THROW(nn::table_structure_(A, "octonion"), std::invalid_argument);
}

TEST(NnInit, AStructureHasTheShapeOfItsAlgebra) {
  const auto refusal = [](const auto& fill) {
    try {
      fill();
    } catch (const std::invalid_argument& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  const at::Tensor flat = torch::zeros({3, 4, 4}), small = torch::zeros({3, 3, 3});
  EXPECT_EQ(refusal([&] { nn::random_structure_(flat); }),
            "random_structure_: A must be (n, n, n), got [3, 4, 4]");
  EXPECT_EQ(refusal([&] { nn::identity_structure_(flat); }),
            "identity_structure_: A must be (n, n, n), got [3, 4, 4]");
  EXPECT_EQ(refusal([&] { nn::structure_power(flat); }),
            "structure_power: A must be (n, n, n), got [3, 4, 4]");
  for (const char* algebra : {"phm(4)", "phm(quaternion)", "phm(identity(4))"})
    EXPECT_EQ(refusal([&] { nn::initialise_structure_(small, algebra::Spec::parse(algebra)); }),
              std::string("initialise_structure_: A must be (n, n, n) with n = 4 for ") + algebra +
                  ", got [3, 3, 3]");
  EXPECT_EQ(small.abs().sum().item<double>(), 0);
}

TEST(NnInit, TheSeedDecides) {
  for (const char* algebra : {"real", "quaternion", "phm(4)"})
    for (const nn::Initialiser kind :
         {nn::Initialiser::glorot, nn::Initialiser::polar, nn::Initialiser::polar_paper}) {
      const auto weights = [&](uint64_t seed) {
        torch::manual_seed(seed);
        return nn::Linear(nn::LinearOptions(16, 8).algebra(algebra).initialiser(kind))->S.detach();
      };
      EXPECT_TRUE(torch::equal(weights(7), weights(7)));
      EXPECT_FALSE(torch::equal(weights(7), weights(8)));
    }
}

TEST(NnInit, AGeneratorOfOnesOwnLeavesTheGlobalOneAlone) {
  const auto draw = [](nn::Initialiser kind) {
    at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(11);
    const at::Tensor S = torch::empty({4, 3, 5}), A = torch::empty({4, 4, 4});
    nn::initialise_structure_(A, algebra::Spec::parse("phm(4)"), generator);
    nn::initialise_weight_(S, kind, 1, generator);
    return torch::cat({S.flatten(), A.flatten()});
  };
  for (const char* name : {"glorot", "he", "lecun", "polar", "polar_he", "polar_paper", "polar_paper_he"}) {
    const nn::Initialiser kind = nn::parse_initialiser(name);
    EXPECT_STREQ(nn::name(kind), name);
    torch::manual_seed(1);
    const at::Tensor first = draw(kind), after_first = torch::rand({1});
    torch::manual_seed(1);
    EXPECT_TRUE(torch::equal(after_first, torch::rand({1}))) << "the global generator moved";
    EXPECT_TRUE(torch::equal(first, draw(kind)));
  }
  EXPECT_THROW(nn::parse_initialiser("xavier"), std::invalid_argument);
}

TEST(NnInit, GateBiasesStartEachGateOfEachComponent) {
  const int64_t n = 2, p = 500, gates = 4;
  const at::Tensor bias = torch::full({n * gates * p}, 7.0, torch::requires_grad());
  const auto gate = [&](int64_t number) { return bias.detach().view({n, gates, p}).select(1, number); };
  nn::initialise_gate_biases_(bias, n, ops::Cell::lstm, 1.5);
  EXPECT_TRUE(gate(1).eq(1.5).all().item<bool>());
  EXPECT_EQ(bias.detach().abs().sum().item<float>(), 1.5f * n * p);

  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(3);
  nn::initialise_gate_biases_(bias, n, ops::Cell::lstm, 0, 101, generator);
  EXPECT_TRUE(gate(0).equal(-gate(1)));  // i = -f
  const at::Tensor steps = gate(1).exp();
  EXPECT_TRUE((steps.ge(1) & steps.lt(100)).all().item<bool>());
  EXPECT_NEAR(steps.mean().item<double>(), 50.5, 4);
  EXPECT_EQ(gate(2).abs().sum().item<float>() + gate(3).abs().sum().item<float>(), 0);

  EXPECT_THROW(nn::initialise_gate_biases_(bias, n, ops::Cell::gru, 1.5), std::invalid_argument);
  EXPECT_THROW(nn::initialise_gate_biases_(bias, n, ops::Cell::lstm, 1.5, 20), std::invalid_argument);
  EXPECT_THROW(nn::initialise_gate_biases_(bias, n, ops::Cell::lstm, 0, 2), std::invalid_argument);
  EXPECT_THROW(nn::initialise_gate_biases_(bias, n, ops::Cell::rnn_tanh, 0, 20), std::invalid_argument);
  nn::initialise_gate_biases_(bias, n, ops::Cell::rnn_tanh);
  EXPECT_EQ(bias.detach().abs().sum().item<float>(), 0);
  EXPECT_THROW(nn::initialise_gate_biases_(torch::zeros({10}), n, ops::Cell::lstm), std::invalid_argument);
}

}  // namespace
}  // namespace quatrain
