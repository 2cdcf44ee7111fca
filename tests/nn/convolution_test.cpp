#include "quatrain/nn/convolution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/functional/conv.h>
#include <torch/nn/functional/padding.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <filesystem>

#include "orders.h"
#include "quatrain/algebra.h"
#include "quatrain/nn/convert.h"
#include "quatrain/nn/linear.h"
#include "quatrain/nn/weights.h"

namespace quatrain::nn {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

double largest_error(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

// The real layer of torch that has the same matrices: H (k, d, kernel...).
at::Tensor expanded(const HypercomplexWeight& weight, at::IntArrayRef kernel) {
  std::vector<int64_t> sizes{weight.out_features(), weight.in_features()};
  sizes.insert(sizes.end(), kernel.begin(), kernel.end());
  return weight.matrix().view(sizes);
}

TEST(Convolution, OptionsMeanWhatTorchsMean) {
  torch::manual_seed(1);
  namespace F = torch::nn::functional;
  const at::Tensor x = torch::randn({2, 8, 9, 10}, at::kDouble);
  for (const char* algebra : {"real", "quaternion", "phm(4)", "wkp(2)"}) {
    SCOPED_TRACE(algebra);
    const auto check = [&](Conv2dOptions options, F::Conv2dFuncOptions theirs, at::Tensor padded = {}) {
      Conv2d layer(options.algebra(algebra));
      layer->to(at::kDouble);
      torch::NoGradGuard no_grad;
      layer->bias.normal_();
      const auto H = expanded(*layer, *options.kernel_size());
      const at::Tensor expected = F::conv2d(padded.defined() ? padded : x, H, theirs.bias(layer->bias));
      ASSERT_EQ(layer(x).sizes(), expected.sizes());
      EXPECT_LT(largest_error(layer(x), expected), 1e-12);
      layer->eval();
      EXPECT_LT(largest_error(layer(x), expected), 1e-12);
      EXPECT_LT(largest_error(layer(x[0]), expected[0]), 1e-12);  // without an axis for the batch
    };
    check({8, 12, 3}, {});
    check(Conv2dOptions(8, 12, 3).stride(2).padding(1), F::Conv2dFuncOptions().stride(2).padding(1));
    check(Conv2dOptions(8, 4, {3, 2}).dilation({1, 2}).padding({2, 0}),
          F::Conv2dFuncOptions().dilation({1, 2}).padding({2, 0}));
    check(Conv2dOptions(8, 4, {4, 3}).padding(torch::kSame), F::Conv2dFuncOptions().padding(torch::kSame));
    check(Conv2dOptions(8, 4, 3).padding(torch::kValid), F::Conv2dFuncOptions().padding(torch::kValid));
    const auto pad = [&](auto mode) { return F::pad(x, F::PadFuncOptions({2, 2, 1, 1}).mode(mode)); };
    check(Conv2dOptions(8, 4, 3).padding({1, 2}).padding_mode(torch::kReflect), {}, pad(torch::kReflect));
    check(Conv2dOptions(8, 4, 3).padding({1, 2}).padding_mode(torch::kReplicate), {}, pad(torch::kReplicate));
    check(Conv2dOptions(8, 4, 3).padding({1, 2}).padding_mode(torch::kCircular), {}, pad(torch::kCircular));
  }
}

// Gradients too, of every mode and order, and results lie as the images do.
template <class Layer, class Torchs, class Options, class TorchsOptions>
void expect_padded_as_torchs(Options options, TorchsOptions theirs, std::vector<int64_t> image) {
  torch::manual_seed(4);
  Layer layer(options.algebra("quaternion"));
  Torchs torchs(theirs);
  layer->to(at::kDouble), torchs->to(at::kDouble);
  const at::Tensor H = expanded(*layer, *options.kernel_size());
  {
    const torch::NoGradGuard no_grad;
    torchs->weight.copy_(H), torchs->bias.copy_(layer->bias.normal_());
  }
  const at::Tensor images = torch::randn(image, at::kDouble);
  for (const bool last : {false, true}) {
    layer->zero_grad(), torchs->zero_grad();
    const at::Tensor x = test::laid(images.clone(), last).requires_grad_(),
                     z = images.clone().requires_grad_();
    const at::Tensor y = layer(x), wanted = torchs(z), g = torch::randn_like(wanted);
    EXPECT_TRUE(test::lies(y, last));
    EXPECT_LT(largest_error(y, wanted), 1e-12);
    EXPECT_TRUE(test::lies(layer(x.detach()[0]).unsqueeze(0), last));  // without a batch
    y.backward(g), wanted.backward(g);
    EXPECT_TRUE(test::lies(x.grad(), last));
    EXPECT_LT(largest_error(x.grad(), z.grad()), 1e-12);
    EXPECT_LT(largest_error(layer->bias.grad(), torchs->bias.grad()), 1e-12);
    const auto dF = torch::autograd::grad({H}, {layer->S}, {torchs->weight.grad()}, /*retain_graph=*/true);
    EXPECT_LT(largest_error(layer->S.grad(), dF[0]), 1e-12);
  }
}

TEST(Convolution, PaddedImagesHaveTorchsGradientsAndTheirOrder) {
  const auto check = [](auto mode, const char* name) {
    SCOPED_TRACE(name);
    expect_padded_as_torchs<Conv1d, torch::nn::Conv1d>(
        Conv1dOptions(8, 4, 3).padding(2).padding_mode(mode),
        torch::nn::Conv1dOptions(8, 4, 3).padding(2).padding_mode(mode), {2, 8, 6});
    expect_padded_as_torchs<Conv2d, torch::nn::Conv2d>(
        Conv2dOptions(8, 4, 3).padding({1, 2}).padding_mode(mode),
        torch::nn::Conv2dOptions(8, 4, 3).padding({1, 2}).padding_mode(mode), {2, 8, 5, 6});
    // Square, since torch's own layer in C++ takes the axes of `same` in the other order.
    expect_padded_as_torchs<Conv2d, torch::nn::Conv2d>(
        Conv2dOptions(8, 4, 4).padding(torch::kSame).padding_mode(mode),
        torch::nn::Conv2dOptions(8, 4, 4).padding(torch::kSame).padding_mode(mode), {2, 8, 5, 6});
    expect_padded_as_torchs<Conv3d, torch::nn::Conv3d>(
        Conv3dOptions(8, 4, 3).padding({0, 1, 2}).padding_mode(mode),
        torch::nn::Conv3dOptions(8, 4, 3).padding({0, 1, 2}).padding_mode(mode), {2, 8, 4, 5, 6});
  };
  check(torch::kZeros, "zeros"), check(torch::kReflect, "reflect");
  check(torch::kReplicate, "replicate"), check(torch::kCircular, "circular");
}

// A mode takes what it pads with from the image; torch's own refusals name neither the layer nor the option.
TEST(Convolution, ImpossibleImagesAreRefusedInOneSentence) {
  const auto refused = [](auto layer, std::vector<int64_t> image, const std::string& words) {
    const at::Tensor x = torch::zeros(image);
    EXPECT_THAT([&] { layer(x); }, ThrowsMessage<std::exception>(HasSubstr(words)));
    EXPECT_THAT([&] { layer->forward_with_epilogue(x, {}); },
                ThrowsMessage<std::exception>(HasSubstr(words)));
  };
  const auto with = [](auto mode) {
    return Conv2d(Conv2dOptions(8, 4, 3).padding({1, 5}).padding_mode(mode));
  };
  refused(with(torch::kReflect), {2, 8, 6, 5},
          "Conv2d: with padding_mode reflect padding must be at most 4 on spatial axis 1 of 5 pixels, got 5");
  refused(with(torch::kReflect), {8, 1, 9}, "must be at most 0 on spatial axis 0 of 1 pixels, got 1");
  refused(
      with(torch::kCircular), {2, 8, 6, 4},
      "Conv2d: with padding_mode circular padding must be at most 4 on spatial axis 1 of 4 pixels, got 5");
  refused(Conv1d(Conv1dOptions(8, 4, 8).padding(torch::kSame).padding_mode(torch::kReflect)), {2, 8, 4},
          "Conv1d: with padding_mode reflect padding must be at most 3 on spatial axis 0 of 4 pixels, got 4");
  refused(Conv3d(Conv3dOptions(8, 4, 3).padding({0, 0, 2}).padding_mode(torch::kReflect)), {2, 8, 3, 3, 2},
          "Conv3d: with padding_mode reflect padding must be at most 1 on spatial axis 2 of 2 pixels, got 2");
  for (Conv2d layer : {with(torch::kReflect), with(torch::kReplicate), with(torch::kCircular),
                       Conv2d(Conv2dOptions(8, 4, 2).padding(torch::kSame))}) {
    refused(layer, {2, 8, 0, 9}, "x must have a pixel or more along each spatial axis, got [2, 8, 0, 9]");
    refused(layer, {2, 2, 8, 7, 7}, "x must have the shape (batch, channels, height, width)");
    refused(layer, {2, 4, 7, 7}, "x must have in_channels = 8");
    EXPECT_EQ(layer(torch::zeros({0, 8, 7, 7})).size(0), 0);
  }
  // As much as there is.
  EXPECT_NO_THROW(with(torch::kReflect)(torch::zeros({2, 8, 2, 6})));
  EXPECT_NO_THROW(with(torch::kCircular)(torch::zeros({2, 8, 1, 5})));
  EXPECT_NO_THROW(with(torch::kReplicate)(torch::zeros({2, 8, 1, 1})));
}

TEST(Convolution, OneAndThreeAxes) {
  torch::manual_seed(2);
  Conv1d one(Conv1dOptions(8, 4, 5).stride(2).padding(2));
  const at::Tensor line = torch::randn({3, 8, 11});
  EXPECT_LT(largest_error(one(line), torch::conv1d(line, expanded(*one, {5}), one->bias, 2, 2)), 1e-5);
  Conv3d three(Conv3dOptions(4, 8, {1, 3, 2}).bias(false));
  const at::Tensor body = torch::randn({2, 4, 3, 5, 4});
  EXPECT_LT(largest_error(three(body), torch::conv3d(body, expanded(*three, {1, 3, 2}))), 1e-5);
}

// Group g holds the g-th part of every component.
TEST(Convolution, GroupsSplitComponents) {
  torch::manual_seed(3);
  constexpr int64_t n = 4, groups = 3, d = 24, k = 12;
  Conv2d layer(Conv2dOptions(d, k, 3).groups(groups).bias(false));
  EXPECT_EQ(layer->S.sizes(), (std::vector<int64_t>{n, k / n, d / (n * groups), 3, 3}));
  const at::Tensor x = torch::randn({2, d, 6, 6}), y = layer(x);
  const auto part = [&](const at::Tensor& t, int64_t g) {
    return t.unflatten(1, {n, groups, -1}).select(2, g).flatten(1, 2);
  };
  for (int64_t g = 0; g < groups; ++g) {
    Conv2d alone(Conv2dOptions(d / groups, k / groups, 3).bias(false));
    torch::NoGradGuard no_grad;
    alone->S.copy_(layer->S.unflatten(1, {groups, -1}).select(1, g));
    alone->drop_prepared();
    EXPECT_LT(largest_error(part(y, g), alone(part(x, g))), 1e-5);
  }
}

// One pixel at a time a transposed convolution multiplies too: norms are multiplied, which the adjoint's are
// as well, but W times x is the Hamilton product itself.
TEST(Convolution, TheTransposedOneMultipliesFromInputToOutput) {
  torch::manual_seed(4);
  ConvTranspose1d layer(ConvTranspose1dOptions(4, 4, 1).bias(false));
  const at::Tensor x = torch::randn({1, 4, 1}), y = layer(x);
  EXPECT_LT(largest_error(y.norm(), layer->S.norm() * x.norm()), 1e-5);
  const at::Tensor product = ops::hamilton_product(layer->S.flatten(), x.flatten(), "quaternion");
  EXPECT_LT(largest_error(y.flatten(), product), 1e-5);
}

TEST(Convolution, TransposedOptionsMeanWhatTorchsMean) {
  torch::manual_seed(5);
  const at::Tensor x = torch::randn({2, 8, 5, 4});
  ConvTranspose2d layer(
      ConvTranspose2dOptions(8, 12, 3).stride(2).padding(1).output_padding(1).algebra("phm(2)"));
  EXPECT_EQ(layer->S.sizes(), (std::vector<int64_t>{2, 4, 6, 3, 3}));
  const at::Tensor W = expanded(*layer, {3, 3}).transpose(0, 1);  // torch's (d, k, kernel)
  const auto theirs = [&](int64_t more) { return at::conv_transpose2d(x, W, layer->bias, 2, 1, more); };
  EXPECT_LT(largest_error(layer(x), theirs(1)), 1e-5);
  for (const std::vector<int64_t>& size : {std::vector<int64_t>{9, 7}, {2, 12, 9, 7}})
    EXPECT_LT(largest_error(layer->forward_to_size(x, size), theirs(0)), 1e-5);
  EXPECT_ANY_THROW(layer->forward_to_size(x, {12, 9, 7}));
  const std::vector<int64_t> large{9, 12};
  EXPECT_THAT([&] { layer->forward_to_size(x, large); },
              ThrowsMessage<std::exception>(HasSubstr("from 7 to 8")));
}

TEST(Convolution, AnEpilogueComesAfterTheBias) {
  torch::manual_seed(9);
  Conv2d layer(Conv2dOptions(8, 12, 3).padding(1).padding_mode(torch::kReflect));
  const at::NoGradGuard no_grad;
  layer->bias.normal_();
  const at::Tensor x = torch::randn({8, 5, 4}), scale = torch::randn({12}), shift = torch::randn({12}),
                   residual = torch::randn({12, 5, 4});
  ops::ConvolutionEpilogue epilogue;
  EXPECT_TRUE(torch::allclose(layer->forward_with_epilogue(x, epilogue), layer(x)));
  epilogue.scale = scale, epilogue.shift = shift, epilogue.residual = residual, epilogue.activation = "relu";
  const at::Tensor expected =
      torch::relu(layer(x) * scale.view({12, 1, 1}) + shift.view({12, 1, 1}) + residual);
  EXPECT_TRUE(torch::allclose(layer->forward_with_epilogue(x, epilogue), expected, 1e-5, 1e-6));
  EXPECT_EQ(layer->forward_with_epilogue(x, epilogue).sizes(), residual.sizes());
  epilogue.shift = torch::ones({1});
  EXPECT_THAT([&] { layer->forward_with_epilogue(x, epilogue); },
              ThrowsMessage<std::exception>(HasSubstr("shift must have out_channels = 12 values, got [1]")));
}

// A teacher that follows another model stays in eval mode, and its weights are written over.
TEST(Convolution, SeesWritesToItsWeights) {
  torch::manual_seed(9);
  const torch::NoGradGuard no_grad;
  for (const char* algebra : {"real", "quaternion", "phm(4)"})
    for (const int64_t kernel : {1, 3})
      for (const at::MemoryFormat order : {at::MemoryFormat::ChannelsLast, at::MemoryFormat::Contiguous})
        for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16}) {
          SCOPED_TRACE(std::string(algebra) + " " + std::to_string(kernel) + " " + c10::toString(type));
          const auto options = Conv2dOptions(16, 16, kernel).algebra(algebra);
          Conv2d layer(options), other(options);
          for (Conv2d one : {layer, other}) one->to(type), one->eval();
          const at::Tensor x = torch::randn({2, 16, 6, 6}).to(type).contiguous(order);
          layer->forward(x);
          for (size_t i = 0; i < layer->parameters().size(); ++i)
            layer->parameters()[i].copy_(other->parameters()[i]);
          EXPECT_TRUE(torch::equal(layer->forward(x), other->forward(x)));
        }
}

TEST(Convolution, WeightsAreDrawnAsTheRealLayersAre) {
  torch::manual_seed(6);
  const auto variance = [](const HypercomplexWeight& weight) { return weight.matrix().var().item<double>(); };
  EXPECT_NEAR(variance(*Conv2d(Conv2dOptions(64, 128, 3))), 2.0 / (9 * (64 + 128)), 2e-5);
  EXPECT_NEAR(variance(*Conv2d(Conv2dOptions(64, 128, 3).initialiser(Initialiser::he))), 2.0 / (9 * 64),
              6e-5);
  EXPECT_NEAR(variance(*ConvTranspose2d(ConvTranspose2dOptions(64, 128, 3).initialiser(Initialiser::he))),
              2.0 / (9 * 64), 6e-5);
}

TEST(Convolution, WeightsAreSavedAndLoadedAndSetToTheNearest) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "convolution.safetensors";
  torch::manual_seed(7);
  Conv2d layer(Conv2dOptions(8, 4, 3).algebra("phm(2)")), other(Conv2dOptions(8, 4, 3).algebra("phm(2)"));
  save_weights(*layer, file);
  load_weights(*other, file);
  EXPECT_TRUE(other->S.equal(layer->S) && other->A.equal(layer->A));
  Conv2d quaternion(Conv2dOptions(8, 4, 3));
  EXPECT_THAT([&] { load_weights(*quaternion, file); }, ThrowsMessage<std::exception>(HasSubstr("phm(2)")));
  std::filesystem::remove(file);
  Conv2d same(Conv2dOptions(8, 4, 3));
  EXPECT_LT(same->set_nearest(quaternion->matrix()), 1e-6);
  EXPECT_LT(largest_error(same->S, quaternion->S), 1e-6);
  ConvTranspose2d turned(ConvTranspose2dOptions(8, 4, 3)), equal(ConvTranspose2dOptions(8, 4, 3));
  EXPECT_LT(equal->set_nearest(turned->matrix()), 1e-6);
  EXPECT_LT(largest_error(equal->S, turned->S), 1e-6);
}

TEST(Convolution, TakesTheNearestOfTorchsWeights) {
  torch::manual_seed(8);
  const auto check = [](auto torchs, auto exact, auto twin) {
    torch::NoGradGuard no_grad;
    const at::Tensor& W = torchs->weight;
    const bool turned = torchs->options.transposed();
    torchs->weight.copy_(
        exact->matrix().view_as(turned ? W.transpose(0, 1).contiguous() : W).transpose(0, turned));
    const ConversionReport report = fill_nearest(*torchs, *twin);
    ASSERT_EQ(report.layers.size(), 1);
    EXPECT_LT(report.layers[0].error.value(), 1e-6);
    EXPECT_LT(largest_error(twin->S, exact->S), 1e-5);
    EXPECT_TRUE(twin->bias.equal(torchs->bias));
    // From a real layer of ours too, and to another one of the algebra.
    auto options = exact->options;
    decltype(exact) real(options.algebra("real")), again(exact->options);
    fill_nearest(*torchs, *real);
    fill_nearest(*real, *again);
    EXPECT_LT(largest_error(again->S, exact->S), 1e-5);
  };
  check(torch::nn::Conv2d(8, 4, 3), Conv2d(8, 4, 3), Conv2d(8, 4, 3));
  check(torch::nn::ConvTranspose1d(8, 4, 3), ConvTranspose1d(8, 4, 3), ConvTranspose1d(8, 4, 3));
  torch::nn::Conv2d grouped(torch::nn::Conv2dOptions(8, 8, 3).groups(2));
  Conv2d ours(Conv2dOptions(8, 8, 3).groups(2));
  EXPECT_THAT([&] { fill_nearest(*grouped, *ours); }, ThrowsMessage<std::exception>(HasSubstr("one group")));
  // The same of ours over the real numbers, whose groups are runs too; and nothing is left out silently.
  Conv2d runs(Conv2dOptions(8, 8, 3).groups(2).algebra("real"));
  EXPECT_THAT([&] { fill_nearest(*runs, *ours); },
              ThrowsMessage<std::exception>(HasSubstr("its groups are parts of every component")));
  torch::nn::Sequential model(runs, grouped, torch::nn::Conv2d(8, 6, 3), torch::nn::Linear(8, 8));
  const ConversionReport report = convert(*model, ConvertOptions("quaternion"));
  ASSERT_EQ(report.layers.size(), 4u);
  EXPECT_THAT(report.layers[0].skipped, HasSubstr("its groups are parts of every component"));
  EXPECT_THAT(report.layers[1].skipped, HasSubstr("its groups are runs of channels"));
  EXPECT_EQ(report.layers[2].skipped, "n = 4 does not divide 6");
  torch::nn::Conv2d alone(8, 8, 3);
  EXPECT_EQ(convert(*alone, "quaternion").layers[0].skipped,
            "a convolution of torch::nn can be replaced only in a torch::nn::Sequential");
}

// Options, weights, the mode, what is frozen, and reports are those of the layer that stood there.
template <class Torchs, class Ours>
void expect_replaced(Torchs torchs, Ours exact, const at::Tensor& x) {
  {
    const torch::NoGradGuard no_grad;
    const bool turned = torchs->options.transposed();
    const at::Tensor& W = torchs->weight;
    torchs->weight.copy_(
        exact->matrix().view_as(turned ? W.transpose(0, 1).contiguous() : W).transpose(0, turned));
  }
  torchs->weight.set_requires_grad(false);
  torch::nn::Sequential model(torchs, torch::nn::ReLU());
  model->eval();
  const at::Tensor expected = model->forward(x);
  const int64_t before = torchs->weight.numel() + (torchs->bias.defined() ? torchs->bias.numel() : 0);
  const ConversionReport report = convert(*model, "quaternion");
  ASSERT_EQ(report.converted(), 1);
  EXPECT_EQ(report.layers[0].in_features, 8);
  EXPECT_EQ(report.layers[0].out_features, 12);
  EXPECT_EQ(report.layers[0].before, before);
  EXPECT_LT(report.layers[0].error.value(), 1e-6);
  EXPECT_LT(largest_error(model->forward(x), expected), 1e-5);
  using Layer = typename Ours::ContainedType;
  const auto& made = model->template at<Layer>(0);
  EXPECT_EQ(&made.S, &model->children()[0]->template as<Layer>()->S);
  EXPECT_FALSE(made.S.requires_grad() || made.is_training());
  EXPECT_EQ(made.bias.defined(), torchs->bias.defined());
}

TEST(Convolution, TorchsInASequentialAreReplaced) {
  torch::manual_seed(8);
  namespace tnn = torch::nn;
  expect_replaced(tnn::Conv1d(tnn::Conv1dOptions(8, 12, 3).stride(2).padding(1).bias(false)),
                  Conv1d(8, 12, 3), torch::randn({2, 8, 9}));
  expect_replaced(tnn::Conv2d(tnn::Conv2dOptions(8, 12, {3, 2})
                                  .padding(torch::kSame)
                                  .dilation({1, 2})
                                  .padding_mode(torch::kReflect)),
                  Conv2d(8, 12, torch::ExpandingArray<2>({3, 2})), torch::randn({2, 8, 7, 6}));
  expect_replaced(tnn::Conv3d(tnn::Conv3dOptions(8, 12, 2)), Conv3d(8, 12, 2), torch::randn({2, 8, 3, 4, 3}));
  expect_replaced(tnn::ConvTranspose1d(tnn::ConvTranspose1dOptions(8, 12, 3)), ConvTranspose1d(8, 12, 3),
                  torch::randn({2, 8, 5}));
  expect_replaced(
      tnn::ConvTranspose2d(tnn::ConvTranspose2dOptions(8, 12, 3).stride(2).padding(1).output_padding(1)),
      ConvTranspose2d(8, 12, 3), torch::randn({2, 8, 4, 4}));
  expect_replaced(tnn::ConvTranspose3d(tnn::ConvTranspose3dOptions(8, 12, 2)), ConvTranspose3d(8, 12, 2),
                  torch::randn({2, 8, 2, 3, 3}));
}

// Weights of equal size are not enough: another kernel or stride is another layer.
TEST(Convolution, TheNearestWeightsAreOfTheSameConvolution) {
  namespace tnn = torch::nn;
  const auto refusal = [](auto real, auto twin, const std::string& words) {
    EXPECT_THAT([&] { fill_nearest(*real, *twin); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("fill_nearest: the module must " + words)));
  };
  const auto with = [](auto change) {
    Conv2dOptions options(8, 8, 3);
    change(options);
    return Conv2d(options);
  };
  const Conv2d plain(Conv2dOptions(8, 8, 3).algebra("real"));
  const tnn::Conv2d torchs(8, 8, 3);
  for (const int of_torch : {0, 1}) {
    const auto differs = [&](auto twin, const std::string& words) {
      of_torch ? refusal(torchs, twin, words) : refusal(plain, twin, words);
    };
    differs(Conv1d(8, 8, 9), "have one kind in both models, got Conv2d and Conv1d");
    differs(ConvTranspose2d(8, 8, 3), "have one kind in both models, got Conv2d and ConvTranspose2d");
    differs(Conv2d(8, 8, torch::ExpandingArray<2>({1, 9})),
            "have one kernel_size in both models, got [3, 3] and [1, 9]");
    differs(with([](auto& o) { o.stride(2); }), "have one stride in both models, got [1, 1] and [2, 2]");
    differs(with([](auto& o) { o.dilation({1, 2}); }), "have one dilation in both");
    differs(
        with([](auto& o) { o.padding(1); }),
        "have one padding before and behind each axis in both models, got (0, 0), (0, 0) and (1, 1), (1, 1)");
    differs(with([](auto& o) { o.groups(2); }), "have one number of groups in both models, got 1 and 2");
    differs(Linear(8, 8), "be a linear layer in both models");
  }
  refusal(Conv2d(Conv2dOptions(8, 8, 3).padding(1).padding_mode(torch::kReflect).algebra("real")),
          with([](auto& o) { o.padding(1); }),
          "have one padding_mode in both models, got reflect and constant");
  refusal(ConvTranspose2d(ConvTranspose2dOptions(8, 8, 3).stride(2).algebra("real")),
          ConvTranspose2d(ConvTranspose2dOptions(8, 8, 3).stride(2).output_padding(1)),
          "have one output_padding in both models");
  refusal(tnn::Linear(8, 8), Conv2d(8, 8, 1), "be a convolution in both models, got ");
  // The same said otherwise, and a mode that pads nothing.
  const Conv2d same(Conv2dOptions(8, 8, 3).padding(1).algebra("real"));
  EXPECT_NO_THROW(fill_nearest(*same, *with([](auto& o) { o.padding(torch::kSame); })));
  EXPECT_NO_THROW(fill_nearest(*plain, *with([](auto& o) { o.padding_mode(torch::kCircular); })));
}

TEST(Convolution, BadOptionsAreNamed) {
  const auto refusal = [](auto options, const std::string& words) {
    EXPECT_THAT([&] { Conv2d layer(options); }, ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  refusal(
      Conv2dOptions(6, 4, 3),
      "Conv2d: in_channels must be divisible by n = 4, got 6 (nearest: 4, 8; add channels, or give a first "
      "layer the algebra \"real\")");
  refusal(Conv2dOptions(8, 6, 3), "Conv2d: out_channels must be divisible by n = 4, got 6 (nearest: 4, 8)");
  refusal(Conv2dOptions(3, 4, 3).algebra("real").groups(2),
          "Conv2d: in_channels must be divisible by n * groups = 2, got 3 (nearest: 2, 4)");
  refusal(Conv2dOptions(8, 4, 3).groups(2), "out_channels must be divisible by n * groups = 8, got 4");
  refusal(Conv2dOptions(8, 4, 3).groups(0), "groups must be at least 1");
  refusal(Conv2dOptions(8, 4, 0), "kernel_size must be at least 1, got 0");
  refusal(Conv2dOptions(8, 4, 3).stride(0), "stride must be at least 1, got 0");
  refusal(Conv2dOptions(8, 4, 3).padding(-1), "padding must be at least 0, got -1");
  refusal(Conv2dOptions(8, 4, 3).padding(torch::kSame).stride(2), "same only where the stride is 1, got 2");
  refusal(Conv2dOptions(8, 4, 3).output_padding(1), "output_padding is a transposed convolution's");
  EXPECT_THAT([] { ConvTranspose2d layer(ConvTranspose2dOptions(8, 4, 3).padding_mode(torch::kReflect)); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("padding_mode must be zeros, got reflect")));
}

}  // namespace
}  // namespace quatrain::nn
