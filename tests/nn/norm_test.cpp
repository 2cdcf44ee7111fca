#include "quatrain/nn/norm.h"

#include <gtest/gtest.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/normalization.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <cmath>
#include <vector>

#include "orders.h"
#include "quatrain/layer_ops.h"

namespace quatrain {
namespace {

TEST(NnNorm, OverAllComponentsIsTorchs) {
  nn::LayerNorm ours(nn::LayerNormOptions(12).n(4));
  torch::nn::LayerNorm theirs(torch::nn::LayerNormOptions({12}));
  const at::Tensor x = torch::randn({3, 12});
  EXPECT_TRUE(torch::equal(ours(x), theirs(x)));
}

TEST(NnNorm, PerComponentNormalisesEachByItself) {
  const at::Tensor scales = torch::tensor({1., 10., 100., 1000.}).view({4, 1});
  const at::Tensor x = (torch::randn({3, 4, 8}) * scales + scales).view({3, 32});
  nn::LayerNorm layer(nn::LayerNormOptions(32).n(4).per_component(true));
  const at::Tensor y = layer(x).view({3, 4, 8});
  EXPECT_TRUE(torch::allclose(y.mean(-1), torch::zeros({3, 4}), 0, 1e-5));
  EXPECT_TRUE(torch::allclose(y.var(-1, false), torch::ones({3, 4}), 0, 1e-3));
  {
    const torch::NoGradGuard no_grad;
    layer->weight.fill_(2);
    layer->bias.fill_(3);
  }
  EXPECT_TRUE(torch::allclose(layer(x).view({3, 4, 8}), 2 * y + 3));
  EXPECT_THROW(nn::LayerNorm(nn::LayerNormOptions(30).n(4).per_component(true)), std::invalid_argument);
}

// As torch's on a CPU: of the type of x.
TEST(NnNorm, OfOneTypeWhateverN) {
  const at::Tensor x = torch::randn({3, 12}).to(torch::kBFloat16), ones = torch::ones({12}),
                   zeros = torch::zeros({12});
  for (const int64_t n : {1, 2, 4}) {
    const at::Tensor y = ops::hypercomplex_layer_norm(x, ones, zeros, n);
    EXPECT_EQ(y.scalar_type(), torch::kBFloat16) << n;
  }
}

// The components of each unit as rows, (units, n, values).
at::Tensor numbers_of(const at::Tensor& x, int64_t n) {
  return x.transpose(0, 1).reshape({n, x.size(1) / n, -1}).transpose(0, 1);
}

// Numbers of which each component is a mixture of all, with a mean of its own.
at::Tensor mixed(at::IntArrayRef spatial, int64_t n = 4) {
  std::vector<int64_t> sizes{n, 3, 40};
  sizes.insert(sizes.end(), spatial.begin(), spatial.end());
  const at::Tensor mixture = torch::randn({n, n}) + torch::eye(n);
  return torch::tensordot(mixture, torch::randn(sizes), {1}, {0}).flatten(0, 1).transpose(0, 1) + 2;
}

TEST(NnNorm, WhitenedComponentsHaveTheCovarianceI) {
  torch::manual_seed(1);
  const auto spatial = std::vector<std::vector<int64_t>>{{}, {7}, {5, 4}, {3, 2, 4}};
  for (const auto& sizes : spatial)
    for (const int64_t n : {1, 3, 4}) {
      const at::Tensor x = mixed(sizes, n);
      nn::WhiteningNorm layer(nn::WhiteningNormOptions(3 * n).n(n).eps(0).momentum(1));
      const at::Tensor y = layer(x);
      const at::Tensor rows = numbers_of(y, n), covariance = rows.matmul(rows.transpose(1, 2)) / rows.size(2);
      EXPECT_LT(rows.mean(-1).abs().max().item<double>(), 1e-5);
      EXPECT_LT((covariance - torch::eye(n) / n).abs().max().item<double>(), 1e-4) << n << sizes;

      // The running statistics are the batch's, with the covariance over one value less, as torch has it.
      const at::Tensor given = numbers_of(x, n);
      EXPECT_LT((layer->running_mean - given.mean(-1).t().flatten()).abs().max().item<double>(), 1e-5);
      for (int64_t unit = 0; unit < 3; ++unit)
        EXPECT_LT(
            (layer->running_covariance.select(2, unit) - torch::cov(given[unit])).abs().max().item<double>(),
            1e-4);
      layer->eval();
      const double shrunk = std::sqrt(1 - 1. / static_cast<double>(given.size(2)));
      EXPECT_LT((layer(x) - shrunk * y).abs().max().item<double>(), 1e-4);
    }
}

TEST(NnNorm, WhiteningIsByItsDefinition) {
  torch::manual_seed(2);
  const at::Tensor x = mixed({2}).to(torch::kDouble);
  nn::WhiteningNorm layer(nn::WhiteningNormOptions(12).eps(0.1));
  layer->to(torch::kDouble);
  {
    const torch::NoGradGuard no_grad;
    layer->weight.normal_();
    layer->bias.normal_();
  }
  const at::Tensor y = numbers_of(layer(x), 4), given = numbers_of(x, 4);
  for (int64_t unit = 0; unit < 3; ++unit) {
    at::Tensor gamma = torch::zeros({4, 4}, torch::kDouble);
    for (int64_t row = 0, place = 0; row < 4; ++row)
      for (int64_t column = 0; column <= row; ++column, ++place)
        gamma[row][column] = gamma[column][row] = layer->weight[place][unit];
    const at::Tensor covariance =
        torch::cov(given[unit], /*correction=*/0) + 0.1 * torch::eye(4, torch::kDouble);
    const at::Tensor white =
        torch::linalg_cholesky(covariance).inverse().matmul(given[unit] - given[unit].mean(-1, true));
    const at::Tensor beta = layer->bias.view({4, 3}).select(1, unit).unsqueeze(-1);
    EXPECT_TRUE(torch::allclose(y[unit], gamma.matmul(white) + beta, 1e-8, 1e-10)) << unit;
  }
}

TEST(NnNorm, WhiteningOfOneComponentIsTorchsBatchNorm) {
  nn::WhiteningNorm ours(nn::WhiteningNormOptions(6).n(1));
  torch::nn::BatchNorm2d theirs(torch::nn::BatchNorm2dOptions(6).eps(1e-4));
  const at::Tensor x = 3 * torch::randn({8, 6, 5, 4}) + 1;
  for (int step = 0; step < 3; ++step) {
    EXPECT_TRUE(torch::allclose(ours(x + step), theirs(x + step), 1e-4, 1e-5));
    EXPECT_TRUE(torch::allclose(ours->running_covariance.flatten(), theirs->running_var));
    EXPECT_TRUE(torch::allclose(ours->running_mean, theirs->running_mean));
  }
  ours->eval(), theirs->eval();
  EXPECT_TRUE(torch::allclose(ours(x), theirs(x), 1e-4, 1e-5));
}

TEST(NnNorm, WhiteningKeepsTypeAndPlaces) {
  torch::manual_seed(3);
  nn::WhiteningNorm layer(12);
  const at::Tensor x = mixed({4, 4}), last = x.contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor y = layer(x);
  EXPECT_TRUE(y.is_contiguous());
  EXPECT_TRUE(layer(last).is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_TRUE(torch::allclose(layer(last), y, 1e-4, 1e-5));
  const at::Tensor signals = x.flatten(2);
  EXPECT_TRUE(test::lies(layer(signals), false));
  EXPECT_TRUE(test::lies(layer(test::laid(signals, true)), true));
  EXPECT_TRUE(torch::allclose(layer(test::laid(signals, true)), y.flatten(2), 1e-4, 1e-5));
  const at::Tensor rounded = layer(x.to(torch::kBFloat16));
  EXPECT_EQ(rounded.scalar_type(), torch::kBFloat16);
  EXPECT_LT((rounded - y).abs().max().item<double>(), 0.1);
  const auto copy = std::dynamic_pointer_cast<nn::WhiteningNormImpl>(layer->clone());
  layer->eval(), copy->eval();
  EXPECT_TRUE(torch::equal(copy->forward(x), layer(x)));
}

TEST(NnNorm, ParametersAndStatisticsGoBackTogether) {
  nn::WhiteningNorm layer(8);
  layer(mixed({3}, 4).narrow(1, 0, 8));
  ASSERT_NE(layer->running_mean.abs().sum().item<double>(), 0);
  layer->reset_parameters();
  EXPECT_EQ(layer->running_mean.abs().sum().item<double>(), 0);
  EXPECT_TRUE(layer->running_covariance.select(2, 0).equal(torch::eye(4)));
}

TEST(NnNorm, NumbersOutOfRangeAreRefused) {
  const auto refuses = [](const auto& options, const char* sentence) {
    using Options = std::decay_t<decltype(options)>;
    try {
      if constexpr (std::is_same_v<Options, nn::LayerNormOptions>)
        nn::LayerNorm{options};
      else
        nn::WhiteningNorm{options};
    } catch (const std::invalid_argument& error) {
      EXPECT_STREQ(error.what(), sentence);
      return;
    }
    ADD_FAILURE() << "not refused: " << sentence;
  };
  refuses(nn::LayerNormOptions(8).eps(-1),
          "LayerNorm: eps must be a finite number that is at least 0, got -1");
  refuses(nn::LayerNormOptions(8).eps(NAN),
          "LayerNorm: eps must be a finite number that is at least 0, got nan");
  refuses(nn::WhiteningNormOptions(8).eps(INFINITY),
          "WhiteningNorm: eps must be a finite number that is at least 0, got inf");
  refuses(nn::WhiteningNormOptions(8).momentum(1.5),
          "WhiteningNorm: momentum must be between 0 and 1, got 1.5");
  nn::LayerNorm{nn::LayerNormOptions(8).eps(0)};
}

TEST(NnNorm, WhiteningRefusesWhatItCannotWhiten) {
  EXPECT_THROW(nn::WhiteningNorm(nn::WhiteningNormOptions(10)), std::invalid_argument);
  EXPECT_THROW(nn::WhiteningNorm(nn::WhiteningNormOptions(10).n(0)), std::invalid_argument);
  nn::WhiteningNorm layer(8);
  EXPECT_THROW(layer(torch::randn({1, 8})), c10::Error);
  EXPECT_THROW(layer(torch::full({5, 8}, std::nan(""))), c10::LinAlgError);
  EXPECT_TRUE(layer->running_mean.equal(torch::zeros(8)));  // what was refused leaves nothing behind
  EXPECT_TRUE(layer(torch::ones({5, 8})).isfinite().all().item<bool>());  // dead units
}

}  // namespace
}  // namespace quatrain
