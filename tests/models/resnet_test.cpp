#include "quatrain/models/resnet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "quatrain/nn/parameters.h"
#include "quatrain/nn/safetensors.h"
#include "quatrain/nn/weights.h"
#include "system_memory.h"
#include "temporary_folder.h"
#include "threads.h"

namespace quatrain::models {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class ResNetWeights : public test::FolderTest {};

int64_t count_of(int64_t depth, const std::string& algebra, Residual residual = Residual::plain) {
  const bool three = algebra == "phm(3)";
  const int64_t channels = algebra == "phm(2)" || algebra == "phm(4)" || algebra == "wkp(4)" ? 4 : 3;
  ResNetOptions options(channels, 10);
  options.algebra(algebra).depth(depth).residual(residual);
  if (three) options.widths({60, 120, 240, 516});
  return nn::parameter_report(*ResNet(options)).total;
}

TEST(ResNet, CountsArePhydis) {
  EXPECT_EQ(count_of(18, "real"), 11'173'962);
  EXPECT_EQ(count_of(50, "real"), 23'520'842);
  EXPECT_EQ(count_of(18, "phm(2)"), 5'594'794);
  EXPECT_EQ(count_of(50, "phm(2)"), 11'797'938);
  EXPECT_EQ(count_of(18, "phm(3)"), 3'635'914);
  EXPECT_EQ(count_of(50, "phm(3)"), 7'562'149);
  EXPECT_EQ(count_of(18, "phm(4)"), 2'805'962);
  EXPECT_EQ(count_of(50, "phm(4)"), 5'938'954);
  EXPECT_EQ(count_of(18, "phm(4)", Residual::phydi), 2'805'962 + 8);
  EXPECT_EQ(count_of(50, "phm(4)", Residual::phydi), 5'938'954 + 16);
  EXPECT_EQ(count_of(18, "wkp(4)"), 2'805'962 + 4 * 20);
}

// Norms have two numbers for each channel. Fixup has five scalars for each of eight blocks instead, and two.
TEST(ResNet, CountsOfFixupAreZhangs) {
  const int64_t first = 64 * 5, others = (128 + 256 + 512) * 5;  // channels behind a norm
  EXPECT_EQ(count_of(18, "phm(4)", Residual::fixup), 2'805'962 - 2 * (first + others) + 8 * 5 + 2);
}

TEST(ResNet, TheDeepestCountsArePhydis) {
  EXPECT_EQ(count_of(152, "real"), 58'156'618);
  EXPECT_EQ(count_of(152, "phm(2)"), 29'165'794);
  EXPECT_EQ(count_of(152, "phm(3)"), 17'775'463);
  EXPECT_EQ(count_of(152, "phm(4)"), 14'678'154);
  EXPECT_EQ(count_of(152, "phm(4)", Residual::phydi), 14'678'154 + 50);
}

ResNetOptions small(const std::string& algebra, Residual residual, int64_t depth = 18,
                    std::vector<int64_t> widths = {8, 16, 16, 32}) {
  ResNetOptions options(algebra == "real" ? 3 : 4, 5);
  return options.algebra(algebra).depth(depth).residual(residual).widths(std::move(widths));
}

TEST(ResNet, EachBlockIsItsShortcutAtTheStart) {
  torch::manual_seed(1);
  const at::Tensor x = torch::randn({2, 8, 6, 6});
  for (const Residual residual : {Residual::phydi, Residual::code}) {
    ResNetBlock same(small("quaternion", residual), 8, 8, 1);
    EXPECT_TRUE(same(x).equal(x));
    ResNetBlock smaller(small("quaternion", residual, 50), 8, 8, 2);
    EXPECT_TRUE(smaller(x).equal(smaller->shortcut_norm.forward(smaller->shortcut(x))));
  }
  ResNetBlock fixup(small("quaternion", Residual::fixup), 8, 8, 1);
  EXPECT_TRUE(fixup(x).equal(torch::relu(x)));
  ResNetBlock plain(small("quaternion", Residual::plain), 8, 8, 1);
  EXPECT_FALSE(plain(x).equal(torch::relu(x)));
}

// The formulas, written out.
TEST(ResNet, BlocksAreWhatTheySay) {
  torch::manual_seed(2);
  const at::Tensor x = torch::randn({2, 8, 6, 6});
  for (const Residual residual : {Residual::plain, Residual::phydi, Residual::code}) {
    ResNetBlock block(small("phm(2)", residual), 8, 16, 2);
    if (block->alpha.defined()) at::NoGradGuard(), block->alpha.data().fill_(0.7);
    auto& conv = block->convolutions;
    const at::Tensor F = block->norms[1].forward(conv[1](torch::relu(block->norms[0].forward(conv[0](x)))));
    const at::Tensor s = block->shortcut_norm.forward(block->shortcut(x));
    const at::Tensor expected = residual == Residual::plain   ? torch::relu(s + F)
                                : residual == Residual::phydi ? s + 0.7 * F
                                                              : s + 0.7 * torch::relu(F);
    EXPECT_LT((block(x) - expected).abs().max().item<double>(), 1e-5);
  }
}

// Zhang et al. add a scalar before the stem's ReLU and one before the head.
TEST(ResNet, FixupIsWhatItSays) {
  torch::manual_seed(14);
  ResNet net(small("quaternion", Residual::fixup));
  {
    const at::NoGradGuard no_grad;
    net->after_stem.fill_(.3), net->before_head.fill_(-.2);
    net->head->weight.normal_();
  }
  const at::Tensor x = torch::randn({2, 4, 8, 8});
  at::Tensor y = torch::relu(net->stem(x) + .3);
  for (const auto& block : *net->blocks) y = block->as<ResNetBlockImpl>()->forward(y);
  const at::Tensor expected = net->head(y.mean({2, 3}) - .2);
  EXPECT_TRUE(torch::allclose(net(x), expected, 1e-5, 1e-5));
}

TEST_F(ResNetWeights, OfFixupWithoutTheScalarsOfTheStemAndTheHeadAreRefused) {
  ResNet net(small("quaternion", Residual::fixup));
  nn::Safetensors weights = nn::weights_of(*net);
  std::erase_if(weights.tensors,
                [](const auto& item) { return item.first == "after_stem" || item.first == "before_head"; });
  nn::write_safetensors(folder_ / "older", weights.tensors, weights.metadata);
  EXPECT_THAT([&] { nn::load_weights(*net, folder_ / "older"); },
              ThrowsMessage<std::runtime_error>(HasSubstr(
                  "older' does not fit the model: the model's 'after_stem' [] is not in the file (and "
                  "1 more difference)")));
}

// In eval mode without gradients norms, sums and activations ride on the convolutions.
void expect_the_same_without_gradients(const ResNetOptions& options, torch::Dtype type) {
  torch::manual_seed(3);
  ResNet net(options);
  {
    const at::NoGradGuard no_grad;
    for (auto& one : net->named_parameters())
      if (one.value().dim() < 2) one.value().add_(torch::rand_like(one.value()), .3);
    for (auto& one : net->named_buffers())
      if (one.value().is_floating_point()) one.value().add_(torch::rand_like(one.value()));
  }
  net->to(type);
  net->eval();
  const at::Tensor x = torch::randn({2, net->options.in_channels(), 8, 8}, type);
  const auto answers = [&] {
    const at::NoGradGuard no_grad;
    return net(x);
  };
  const double tolerance = type == at::kFloat ? 1e-4 : 1e-10;
  EXPECT_TRUE(torch::allclose(answers(), net(x).detach(), tolerance, tolerance));
  const at::NoGradGuard no_grad;
  net->stem_norm.is_empty() ? net->stem->parameters()[0].mul_(2) : net->stem_norm.ptr()->buffers()[0].add_(1);
  const at::Tensor changed = answers();
  const at::AutoGradMode grad(true);
  EXPECT_TRUE(torch::allclose(changed, net(x).detach(), tolerance, tolerance));
}

TEST(ResNet, AnswersAreTheSameWithAndWithoutGradients) {
  for (const Residual residual : {Residual::plain, Residual::phydi, Residual::code, Residual::fixup}) {
    for (const std::string algebra : {"real", "quaternion", "phm(4)", "wkp(4)"})
      for (const int64_t depth : {18, 50})
        for (const auto type : {at::kFloat, at::kDouble}) {
          SCOPED_TRACE(algebra + ", " + name(residual) + ", depth " + std::to_string(depth));
          expect_the_same_without_gradients(small(algebra, residual, depth), type);
        }
    // Of so many channels that the factors are used.
    SCOPED_TRACE(std::string("wide, ") + name(residual));
    expect_the_same_without_gradients(small("quaternion", residual, 18, {48, 48, 96, 96}), at::kFloat);
  }
}

// One norm that goes on with the batch's statistics, as where the others are frozen.
TEST(ResNet, ANormThatTrainsTakesTheWholeBatch) {
  torch::manual_seed(12);
  const at::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({40, 4, 64, 64});
  for (const bool in_block : {false, true}) {
    ResNet net(small("quaternion", Residual::plain)), again(small("quaternion", Residual::plain));
    for (ResNet* one : {&net, &again}) {
      for (auto& parameter : (*one)->parameters())
        if (parameter.dim() > 1)
          parameter.copy_(torch::linspace(-.4, .6, parameter.numel()).view_as(parameter));
      (*one)->eval();
      const auto norm =
          in_block ? (*one)->blocks[0]->as<ResNetBlockImpl>()->norms[0].ptr() : (*one)->stem_norm.ptr();
      norm->train();
    }
    const at::Tensor got = net(x);
    const at::AutoGradMode grad(true);
    EXPECT_TRUE(torch::allclose(got, again(x).detach(), 1e-4, 1e-4)) << in_block;
    const auto buffers = net->named_buffers(), expected = again->named_buffers();
    for (const auto& one : buffers)
      EXPECT_TRUE(torch::allclose(one.value(), expected[one.key()])) << one.key();
  }
}

// Of pictures whose first stages are large, a few at a time.
TEST(ResNet, EvaluatesManyPicturesInPanels) {
  const test::Threads threads(1);
  for (const auto& [depth, stem] :
       {std::pair<int64_t, Stem>(18, Stem::small), {50, Stem::small}, {18, Stem::large}}) {
    torch::manual_seed(13);
    ResNet net(small("quaternion", Residual::plain, depth).stem(stem));
    net->eval();
    // The blocks behind the large stem see a sixteenth of the pixels.
    const at::Tensor x = torch::randn({40, net->options.in_channels(), 64, stem == Stem::large ? 256 : 64});
    const at::Tensor expected = net(x).detach();
    const at::NoGradGuard no_grad;
    const test::SystemMemory system;
    EXPECT_TRUE(torch::allclose(net(x), expected, 1e-4, 1e-4)) << depth;
    // Of the input, not of a stage.
    EXPECT_LE(system.largest(), x.nbytes() + 4096) << depth;
    EXPECT_EQ(net(x.narrow(0, 0, 0)).size(0), 0);
  }
}

TEST(ResNet, EveryKindLearns) {
  const at::Tensor labels = torch::arange(20) % 5;
  for (const Residual residual : {Residual::plain, Residual::phydi, Residual::code, Residual::fixup})
    for (const std::string algebra : {"real", "quaternion", "phm(4)", "wkp(4)"}) {
      SCOPED_TRACE(std::string(name(residual)) + " " + algebra);
      torch::manual_seed(3);
      ResNet net(small(algebra, residual));
      const at::Tensor x = torch::randn({20, algebra == "real" ? 3 : 4, 8, 8});
      torch::optim::Adam optimizer(net->parameters(), 3e-3);
      double first = 0, last = 0;
      for (int step = 0; step < 12; ++step) {
        optimizer.zero_grad();
        const at::Tensor loss = torch::cross_entropy_loss(net(x), labels);
        loss.backward();
        optimizer.step();
        (step ? last : first) = loss.item<double>();
      }
      EXPECT_LT(last, 0.8 * first);
      net->eval();
      EXPECT_EQ(net(x).sizes(), (std::vector<int64_t>{20, 5}));
    }
}

TEST(ResNet, NormsMayWhiten) {
  for (const std::string algebra : {"quaternion", "phm(2)"}) {
    torch::manual_seed(4);
    auto options = small(algebra, Residual::phydi).norm(ConvolutionNorm::whitening);
    ResNet net(options.in_channels(4));
    const auto state = net->named_buffers();
    const int64_t n = options.algebra().n;
    EXPECT_EQ(state["blocks.2.shortcut_norm.running_covariance"].sizes(),
              (std::vector<int64_t>{n, n, 16 / n}));
    const at::Tensor x = torch::randn({20, 4, 8, 8}), labels = torch::arange(20) % 5;
    torch::optim::Adam optimizer(net->parameters(), 3e-3);
    double first = 0, last = 0;
    for (int step = 0; step < 12; ++step) {
      optimizer.zero_grad();
      const at::Tensor loss = torch::cross_entropy_loss(net(x), labels);
      loss.backward();
      optimizer.step();
      (step ? last : first) = loss.item<double>();
    }
    EXPECT_LT(last, 0.8 * first) << algebra;
    net->eval();
    const auto copy = std::dynamic_pointer_cast<ResNetImpl>(net->clone());
    EXPECT_TRUE(copy->forward(x).equal(net(x)));
  }
  EXPECT_THAT([] { parse_convolution_norm("layer"); },
              ThrowsMessage<std::exception>(HasSubstr("batch, whitening")));
}

TEST(ResNet, TheStemMayBeReal) {
  auto options = small("quaternion", Residual::plain).real_stem(true);
  options.in_channels(3);
  ResNet net(options);
  EXPECT_EQ(net->stem->S.sizes(), (std::vector<int64_t>{1, 8, 3, 3, 3}));
  EXPECT_EQ(net(torch::randn({2, 3, 8, 8})).sizes(), (std::vector<int64_t>{2, 5}));
}

// With a thousand classes it is the network of He et al., whose counts torchvision prints.
TEST(ResNet, TheLargeStemIsHes) {
  const auto count = [](int64_t depth) {
    return nn::parameter_report(
               *ResNet(ResNetOptions(3, 1000).algebra("real").depth(depth).stem(Stem::large)))
        .total;
  };
  EXPECT_EQ(count(18), 11'689'512);
  EXPECT_EQ(count(50), 25'557'032);
}

// The formula, written out, with gradients and without.
TEST(ResNet, TheLargeStemIsAConvolutionAndAMaximumOfStrideTwo) {
  torch::manual_seed(8);
  for (const Residual residual : {Residual::plain, Residual::fixup}) {
    ResNet net(small("quaternion", residual).stem(Stem::large));
    EXPECT_EQ(net->stem->S.size(-1), 7);
    const at::NoGradGuard no_grad;
    if (net->after_stem.defined()) net->after_stem.fill_(.3), net->head->weight.normal_();
    net->eval();
    const at::Tensor x = torch::randn({3, 4, 37, 30}), first = net->stem(x);
    at::Tensor y = torch::relu(net->stem_norm.is_empty() ? first + .3 : net->stem_norm.forward(first));
    ASSERT_EQ(y.sizes(), (std::vector<int64_t>{3, 8, 19, 15}));
    y = torch::max_pool2d(y, {3, 3}, {2, 2}, {1, 1});
    ASSERT_EQ(y.sizes(), (std::vector<int64_t>{3, 8, 10, 8}));
    for (const auto& block : *net->blocks) y = block->as<ResNetBlockImpl>()->forward(y);
    const at::Tensor expected = net->head(y.mean({2, 3}));
    const double size = expected.abs().max().item<double>();
    EXPECT_LT((net(x) - expected).abs().max().item<double>(), 1e-5 * size);
    const at::AutoGradMode gradients(true);
    EXPECT_LT((net(x) - expected).abs().max().item<double>(), 1e-5 * size);
  }
  EXPECT_EQ(parse_stem(name(Stem::large)), Stem::large);
  EXPECT_THAT([] { parse_stem("huge"); }, ThrowsMessage<std::exception>(HasSubstr("small, large")));
}

TEST(ResNet, WidthsAreTakenToMultiples) {
  EXPECT_EQ(divisible_widths({64, 128, 256, 512}, 3), (std::vector<int64_t>{63, 129, 255, 513}));
  EXPECT_EQ(divisible_widths({64, 128}, 4), (std::vector<int64_t>{64, 128}));
  EXPECT_EQ(divisible_widths({1}, 8), (std::vector<int64_t>{8}));
}

TEST(ResNet, BadOptionsAreNamed) {
  const auto refusal = [](ResNetOptions options, const std::string& words) {
    EXPECT_THAT([&] { ResNet net(options); }, ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  refusal(small("quaternion", Residual::plain, 20), "depth must be one of 18, 34, 50, 101, 152, got 20");
  refusal(small("phm(3)", Residual::plain), "widths must be divisible by n = 3, got 8");
  refusal(
      ResNetOptions(3, 5),
      "ResNet: in_channels must be divisible by n = 4, got 3 (nearest: 4; add channels, or take real_stem)");
  refusal(small("real", Residual::plain).widths({8, 8}), "widths must have 4 numbers");
  EXPECT_THAT([] { parse_residual("plane"); }, ThrowsMessage<std::exception>(HasSubstr("plain, phydi")));
  EXPECT_THAT(
      [] {
        ResNet(small("real", Residual::plain))(torch::zeros({1, 4, 8, 8}));
      },
      ThrowsMessage<std::exception>(HasSubstr("(images, 3, height, width)")));
}

}  // namespace
}  // namespace quatrain::models
