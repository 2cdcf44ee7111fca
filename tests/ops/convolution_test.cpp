// The operator `convolution` against at::convolution of H in float64: options, layouts, algebras,
// derivatives, errors.

#include "quatrain/conv_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <functional>

#include "ops/convolution_reference.h"

namespace quatrain {
namespace {

using ops::ConvolutionOptions;
using ops::Way;
using ops::Winograd;
using test::convolution_of_H;
using test::relative_error;

struct Case {
  int64_t n = 4, q = 3, m = 2, groups = 1, batch = 2;
  std::vector<int64_t> image{6, 5}, kernel{3, 3};
  ConvolutionOptions options{};
  std::string algebra = "quaternion";
};

/// F in the shape of a case.
at::Tensor kernel_of(const Case& c, torch::Dtype type) {
  std::vector<int64_t> sizes{c.n, c.m, c.q / c.groups};
  if (c.options.transposed) sizes = {c.n, c.q, c.m / c.groups};
  sizes.insert(sizes.end(), c.kernel.begin(), c.kernel.end());
  return torch::randn(sizes, type);
}

at::Tensor image_of(const Case& c, torch::Dtype type, bool channels_last = false) {
  std::vector<int64_t> sizes{c.batch, c.n * c.q};
  sizes.insert(sizes.end(), c.image.begin(), c.image.end());
  const at::Tensor x = torch::randn(sizes, type);
  return test::laid(x, channels_last);
}

/// Values and gradients of one case, in every type and layout, against H in float64.
void expect_as_H(const Case& c, torch::Dtype type = torch::kFloat, double tolerance = 1e-5) {
  torch::manual_seed(3);
  for (const bool last : {false, true}) {
    SCOPED_TRACE(last ? "channels last" : "channels first");
    const at::Tensor F = kernel_of(c, type).requires_grad_(),
                     bias = torch::randn({c.n * c.m}, type).requires_grad_();
    const at::Tensor x = image_of(c, type, last).requires_grad_();
    const at::Tensor F_ = F.detach().to(torch::kDouble).requires_grad_(),
                     b_ = bias.detach().to(torch::kDouble).requires_grad_(),
                     x_ = x.detach().to(torch::kDouble).requires_grad_();
    const at::Tensor y = ops::convolution(x, F, bias, {c.algebra, {}, {}}, c.options);
    const at::Tensor expected = convolution_of_H(x_, F_, b_, test::table_of(c.algebra), c.options);
    ASSERT_EQ(y.sizes(), expected.sizes());
    EXPECT_TRUE(test::lies(y, last));
    EXPECT_LT(relative_error(y, expected), tolerance);
    const at::Tensor g = torch::randn_like(expected);
    const auto got = torch::autograd::grad({y}, {x, F, bias}, {g.to(type)});
    const auto wanted = torch::autograd::grad({expected}, {x_, F_, b_}, {g});
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_EQ(got[i].sizes(), wanted[i].sizes());
      EXPECT_TRUE(i > 0 || test::lies(got[i], last));
      EXPECT_LT(relative_error(got[i], wanted[i]), tolerance) << "gradient " << i;
    }
  }
}

TEST(Convolution, EveryOptionAgreesWithH) {
  const std::vector<std::pair<std::string, Case>> cases{
      {"plain", {}},
      {"padding", {.options = {.padding = {1, 2}}}},
      {"stride", {.options = {.stride = {2, 1}, .padding = {1}}}},
      {"dilation", {.image = {9, 8}, .options = {.padding = {2}, .dilation = {2, 3}}}},
      {"one pixel", {.kernel = {1, 1}}},
      {"one pixel, stride", {.kernel = {1, 1}, .options = {.stride = {2}}}},
      {"one pixel, padding", {.kernel = {1, 1}, .options = {.padding = {1}}}},
      {"even kernel", {.kernel = {2, 4}, .options = {.padding = {1}}}},
      {"groups", {.q = 6, .m = 4, .groups = 2, .options = {.padding = {1}, .groups = 2}}},
      {"depthwise", {.q = 3, .m = 6, .groups = 3, .options = {.padding = {1}, .groups = 3}}},
      {"one axis", {.image = {9}, .kernel = {3}, .options = {.stride = {2}, .padding = {1}}}},
      {"three axes", {.image = {4, 5, 3}, .kernel = {3, 2, 3}, .options = {.padding = {1}}}},
      {"transposed",
       {.options = {.stride = {2}, .padding = {1}, .transposed = true, .output_padding = {1, 0}}}},
      {"transposed, stride 1", {.options = {.padding = {1}, .transposed = true}}},
      {"transposed groups",
       {.q = 6,
        .m = 4,
        .groups = 2,
        .options = {.stride = {2}, .dilation = {1, 2}, .transposed = true, .groups = 2}}},
      {"transposed, one axis", {.image = {5}, .kernel = {4}, .options = {.stride = {2}, .transposed = true}}},
      {"transposed, three axes",
       {.image = {3, 2, 3}, .kernel = {2, 3, 2}, .options = {.stride = {1, 2, 1}, .transposed = true}}},
  };
  for (const auto& [name, base] : cases)
    for (const Way way : {Way::automatic, Way::factored, Way::mixed, Way::materialised})
      for (const auto& [type, tolerance] : {std::pair{torch::kFloat, 1e-5}, {torch::kDouble, 1e-12}}) {
        SCOPED_TRACE(name + ", " + ops::name(way) + ", " + c10::toString(type));
        Case c = base;
        c.options.way = way;
        expect_as_H(c, type, tolerance);
      }
}

TEST(Convolution, EveryAlgebra) {
  for (const std::string algebra : {"real", "complex", "quaternion", "octonion", "split_quaternion", "dual"})
    for (const Way way : {Way::factored, Way::materialised})
      for (const bool transposed : {false, true}) {
        SCOPED_TRACE(algebra + ", " + ops::name(way) + (transposed ? ", transposed" : ""));
        expect_as_H({.n = algebra::get(algebra).n(),
                     .options = {.padding = {1}, .transposed = transposed, .way = way},
                     .algebra = algebra});
      }
}

TEST(Convolution, OneComponentIsTorchs) {
  const at::Tensor x = torch::randn({2, 6, 7, 5}), F = torch::randn({1, 4, 6, 3, 3}), b = torch::randn({4});
  EXPECT_TRUE(torch::allclose(ops::convolution(x, F, b, {"real", {}, {}}, {.padding = {1}}),
                              torch::conv2d(x, F[0], b, 1, 1), 1e-5, 1e-6));
}

TEST(Convolution, LearnedStructuresHaveGradients) {
  for (const std::string algebra : {"learned", "factored"})
    for (const Way way : {Way::automatic, Way::factored, Way::materialised}) {
      if (algebra == "learned" && way == Way::factored) continue;  // below
      SCOPED_TRACE(algebra + ", " + ops::name(way));
      torch::manual_seed(5);
      const auto f64 = torch::kDouble;
      at::Tensor A = algebra == "learned" ? torch::randn({3, 3, 3}, f64) : torch::randn({3, 3, 5}, f64);
      const at::Tensor x = torch::randn({2, 9, 5, 4}, f64), F = torch::randn({3, 2, 3, 3, 3}, f64);
      const ConvolutionOptions options{.padding = {1}, .way = way};
      const auto gradients = [&](torch::Dtype type, bool reference) {
        const at::Tensor a = A.to(type).requires_grad_(), x_ = x.to(type).requires_grad_(),
                         F_ = F.to(type).requires_grad_();
        const at::Tensor table =
            algebra == "learned" ? a : torch::einsum("ir,br,ar->iab", {a[0], a[1], a[2]});
        const at::Tensor y = reference ? convolution_of_H(x_, F_, {}, table, options)
                                       : ops::convolution(x_, F_, {}, {algebra, a, {}}, options);
        return torch::autograd::grad({y.sin().sum()}, {x_, F_, a});
      };
      const auto expected = gradients(f64, true), in_double = gradients(f64, false),
                 in_float = gradients(torch::kFloat, false);
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_LT(relative_error(in_double[i], expected[i]), 1e-12) << i;
        EXPECT_LT(relative_error(in_float[i], expected[i]), 5e-5) << i;
      }
    }
}

/// Of whom first and then second derivatives are taken: bits of x, F and A.
std::vector<at::Tensor> second_derivatives(int wanted, torch::Dtype type, bool reference,
                                           const ConvolutionOptions& options,
                                           const std::vector<int64_t>& image = {2, 8, 4, 5},
                                           const std::vector<int64_t>& kernel = {4, 3, 2, 3, 3}) {
  torch::manual_seed(6);
  std::vector<at::Tensor> all, leaves;
  for (const std::vector<int64_t>& sizes : {image, kernel, std::vector<int64_t>{4, 4, 4}}) {
    all.push_back(torch::randn(sizes, torch::kDouble).to(type).requires_grad_(wanted >> all.size() & 1));
    if (all.back().requires_grad()) leaves.push_back(all.back());
  }
  const at::Tensor y = reference ? convolution_of_H(all[0], all[1], {}, all[2], options)
                                 : ops::convolution(all[0], all[1], {}, {"learned", all[2], {}}, options);
  at::Tensor sum;
  for (const at::Tensor& first : torch::autograd::grad({y.sin().sum()}, leaves, {}, true, true))
    sum = sum.defined() ? sum + first.pow(2).sum() : first.pow(2).sum();
  return torch::autograd::grad({sum}, leaves);
}

TEST(Convolution, SecondDerivatives) {
  // Any of the three may be frozen, and no way may answer for more than it was asked.
  for (const Way way : {Way::automatic, Way::factored, Way::materialised})
    for (const int64_t stride : {1, 2})
      for (int wanted = 1; wanted < 8; ++wanted) {
        SCOPED_TRACE(c10::str(ops::name(way), ", stride ", stride, ", wanted ", wanted));
        const ConvolutionOptions options{.stride = {1, stride}, .padding = {1}, .way = way};
        const auto expected = second_derivatives(wanted, torch::kDouble, true, options),
                   in_float = second_derivatives(wanted, torch::kFloat, false, options);
        for (size_t i = 0; i < expected.size(); ++i)
          EXPECT_LT(relative_error(in_float[i], expected[i]), 2e-4) << i;
        if (way == Way::factored) continue;  // float64 is composed, without factors of a learned A
        const auto in_double = second_derivatives(wanted, torch::kDouble, false, options);
        for (size_t i = 0; i < expected.size(); ++i)
          EXPECT_LT(relative_error(in_double[i], expected[i]), 1e-11) << i;
      }
}

TEST(Convolution, SecondDerivativesOfEveryOption) {
  struct Asked {
    const char* name;
    ConvolutionOptions options;
    std::vector<int64_t> image{2, 8, 4, 5}, kernel{4, 3, 2, 3, 3};
  };
  const std::vector<Asked> all{
      {"dilation", {.padding = {2}, .dilation = {2}}},
      {"groups", {.padding = {1}, .groups = 2}, {2, 16, 4, 5}, {4, 6, 2, 3, 3}},
      {"transposed",
       {.stride = {2, 1}, .padding = {1}, .transposed = true, .output_padding = {1, 0}},
       {2, 12, 4, 5}},
      {"transposed, groups",
       {.stride = {2}, .transposed = true, .groups = 2},
       {2, 16, 3, 4},
       {4, 4, 2, 3, 3}},
      {"one axis", {.stride = {2}, .padding = {1}}, {2, 8, 7}, {4, 3, 2, 3}},
      {"transposed, one axis", {.stride = {3}, .transposed = true}, {2, 12, 4}, {4, 3, 2, 3}},
      {"three axes", {.padding = {1}}, {1, 8, 3, 4, 3}, {4, 3, 2, 3, 2, 3}},
      {"one pixel, stride", {.stride = {2}}, {2, 8, 4, 5}, {4, 3, 2, 1, 1}},
      {"tiles of 2 x 2", {.padding = {1}, .winograd = Winograd::f2}},
      {"tiles of 4 x 4", {.padding = {1}, .winograd = Winograd::f4}},
      {"tiles of 4 x 4, transposed",
       {.padding = {1}, .transposed = true, .winograd = Winograd::f4},
       {2, 12, 4, 5}},
  };
  constexpr int kAll = 7;
  for (const auto& [name, options, image, kernel] : all) {
    SCOPED_TRACE(name);
    const auto expected = second_derivatives(kAll, torch::kDouble, true, options, image, kernel),
               in_float = second_derivatives(kAll, torch::kFloat, false, options, image, kernel),
               in_double = second_derivatives(kAll, torch::kDouble, false, options, image, kernel);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_LT(relative_error(in_float[i], expected[i]), 3e-4) << i;
      EXPECT_LT(relative_error(in_double[i], expected[i]), 1e-10) << i;
    }
  }
}

TEST(Convolution, GradientsAreThoseAskedFor) {
  torch::manual_seed(6);
  const at::Tensor x = torch::randn({2, 8, 4, 5}), F = torch::randn({4, 3, 2, 3, 3}),
                   A = torch::randn({4, 4, 4}), grad = torch::randn({2, 12, 4, 5});
  for (const Way way : {Way::factored, Way::materialised})
    for (int mask = 0; mask < 8; ++mask) {
      SCOPED_TRACE(c10::str(ops::name(way), ", mask ", mask));
      const bool of_x = mask & 1, of_F = mask & 2, of_A = mask & 4;
      const auto [dx, dF, dA] = ops::convolution_backward(grad, x, F, {"learned", A, {}},
                                                          {.padding = {1}, .way = way}, {of_x, of_F, of_A});
      EXPECT_EQ(dx.defined(), of_x);
      EXPECT_EQ(dF.defined(), of_F);
      EXPECT_EQ(dA.defined(), of_A);
    }
}

TEST(Convolution, AnyStrides) {
  torch::manual_seed(8);
  const at::Tensor F = torch::randn({4, 2, 3, 3, 3});
  const ops::Product product{"quaternion", {}, {}};
  const ConvolutionOptions options{.padding = {1}};
  const at::Tensor whole = torch::randn({4, 24, 12, 10});
  for (const at::Tensor& x : {whole.slice(1, 0, 24, 2), whole.slice(0, 1, 3).slice(1, 0, 12),
                              whole.slice(1, 0, 12).transpose(2, 3), whole.slice(1, 6, 18).slice(2, 0, 12, 3),
                              whole.slice(1, 0, 12).slice(3, 0, 1).expand({4, 12, 12, 5})}) {
    const at::Tensor y = ops::convolution(x, F, {}, product, options);
    EXPECT_LT(relative_error(y, convolution_of_H(x.to(torch::kDouble), F.to(torch::kDouble), {},
                                                 test::table_of("quaternion"), options)),
              1e-5);
  }
}

TEST(Convolution, EmptyBatches) {
  const auto check = [](const std::string& algebra, torch::Dtype type, bool last, int64_t axes, Way way,
                        const ConvolutionOptions& given) {
    ConvolutionOptions options = given;
    options.way = way;
    const auto of = [axes](std::vector<int64_t> sizes, int64_t side) {
      sizes.insert(sizes.end(), static_cast<size_t>(axes), side);
      return sizes;
    };
    const int64_t groups = options.groups, side = options.transposed ? 4 : 9;
    const at::Tensor x = test::laid(torch::empty(of({0, 4 * 12}, side), type), last).requires_grad_(),
                     F = torch::randn(of({4, 12, 12 / groups}, 3), type).requires_grad_(),
                     bias = torch::randn({4 * 12}, type).requires_grad_(),
                     A = torch::randn({4, 4, 4}, type).requires_grad_();
    const ops::Product product{algebra, algebra == "learned" ? A : at::Tensor(), {}};
    const at::Tensor y = ops::convolution(x, F, bias, product, options);
    EXPECT_EQ(y.sizes(), at::IntArrayRef(of({0, 4 * 12}, options.transposed ? 9 : 4)));
    std::vector<at::Tensor> leaves{x, F, bias};
    if (algebra == "learned") leaves.push_back(A);
    const auto gradients = torch::autograd::grad({y.sum()}, leaves);
    for (size_t i = 0; i < leaves.size(); ++i) {
      EXPECT_EQ(gradients[i].sizes(), leaves[i].sizes()) << i;
      EXPECT_EQ(gradients[i].abs().sum().item<double>(), 0) << i;
    }
    const torch::NoGradGuard no_grad;
    EXPECT_EQ(ops::convolution_with_epilogue(
                  x, F, product, {torch::ones({48}, type), bias, torch::empty_like(y), "gelu"}, options)
                  .sizes(),
              y.sizes());
  };
  for (const std::string algebra : {"quaternion", "learned"})
    for (const torch::Dtype type : {torch::kFloat, torch::kDouble, torch::kBFloat16})
      for (const Way way : {Way::automatic, Way::factored, Way::materialised})
        for (const int64_t axes : {1, 2, 3})
          for (const bool last : {false, true})
            for (const int64_t groups : {1, 3}) {
              if (algebra == "learned" && way == Way::factored) continue;  // it needs factors
              SCOPED_TRACE(c10::str(algebra, ", ", c10::toString(type), ", ", ops::name(way), ", ", axes,
                                    " axes, ", groups, " groups", last ? ", channels last" : ""));
              check(algebra, type, last, axes, way, {.stride = {2}, .groups = groups});
              check(algebra, type, last, axes, way, {.stride = {2}, .transposed = true, .groups = groups});
            }
}

TEST(Convolution, ConstantKernelsArePrepared) {
  torch::manual_seed(9);
  const at::Tensor x = torch::randn({2, 32, 8, 8}), F = torch::randn({4, 8, 8, 3, 3});
  for (const Way way : {Way::automatic, Way::factored, Way::materialised}) {
    const ConvolutionOptions fresh{.padding = {1}, .way = way},
        kept{.padding = {1}, .way = way, .constant = true};
    const at::Tensor before = ops::convolution(x, F, {}, {"quaternion", {}, {}}, kept);
    EXPECT_GT(ops::prepared_size().bytes, 0);
    EXPECT_TRUE(torch::equal(before, ops::convolution(x, F, {}, {"quaternion", {}, {}}, kept)));
    EXPECT_TRUE(
        torch::allclose(before, ops::convolution(x, F, {}, {"quaternion", {}, {}}, fresh), 1e-4, 1e-4));
    F.mul_(2);  // what was prepared is out of date
    EXPECT_TRUE(
        torch::allclose(2 * before, ops::convolution(x, F, {}, {"quaternion", {}, {}}, kept), 1e-4, 1e-4));
    ops::drop_prepared(F);
  }
}

// Encoders and decoders share kernels: what is kept for one call must not serve another.
TEST(Convolution, ConstantKernelsServeEveryCall) {
  torch::manual_seed(10);
  const at::Tensor F = torch::randn({4, 8, 8, 3, 3});
  for (const Way way : {Way::automatic, Way::factored, Way::materialised})
    for (int round = 0; round < 2; ++round)
      for (const ConvolutionOptions& options :
           {ConvolutionOptions{.padding = {1}}, ConvolutionOptions{.padding = {1}, .transposed = true},
            ConvolutionOptions{.stride = {2}, .transposed = true},
            ConvolutionOptions{.stride = {3, 2}, .transposed = true},
            ConvolutionOptions{.stride = {2}, .dilation = {2}, .transposed = true},
            ConvolutionOptions{.padding = {1}, .groups = 2},
            ConvolutionOptions{.stride = {2}, .transposed = true, .groups = 2}}) {
        SCOPED_TRACE(std::string(ops::name(way)) + ", stride " + std::to_string(options.stride[0]) + ", " +
                     std::to_string(options.groups) + " groups" + (options.transposed ? ", transposed" : ""));
        const int64_t channels = options.transposed ? 32 : 32 * options.groups;
        const at::Tensor x = torch::randn({2, channels, 8, 8});
        ConvolutionOptions fresh = options, kept = options;
        fresh.way = kept.way = way, kept.constant = true;
        const ops::Product product{"quaternion", {}, {}};
        EXPECT_LT(relative_error(ops::convolution(x, F, {}, product, kept),
                                 ops::convolution(x, F, {}, product, fresh)),
                  1e-6);
      }
  ops::drop_prepared(F);
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "no error";
}

std::string error_of(const at::Tensor& x, const at::Tensor& F, const ConvolutionOptions& options,
                     const at::Tensor& bias = {}) {
  return error_of([&] { ops::convolution(x, F, bias, {"quaternion", {}, {}}, options); });
}

TEST(Convolution, ErrorsSayWhatIsWrong) {
  using testing::HasSubstr;
  const at::Tensor x = torch::randn({2, 12, 4, 4}), F = torch::randn({4, 2, 3, 3, 3});
  EXPECT_THAT(error_of(x, torch::randn({4, 2, 3, 7, 3}), {.padding = {1}}),
              HasSubstr("the kernel reaches over 7 pixels along spatial axis 0, the padded image has 6"));
  EXPECT_THAT(error_of(x, torch::randn({4, 2, 3}), {}), HasSubstr("F must have the shape"));
  EXPECT_THAT(error_of(x, torch::randn({3, 2, 4, 3, 3}), {}),
              HasSubstr("F must have 4 blocks for the algebra 'quaternion', got 3"));
  EXPECT_THAT(error_of(torch::randn({2, 8, 4, 4}), F, {}), HasSubstr("x must have in_channels = 12"));
  EXPECT_THAT(error_of(torch::randn({2, 12, 4}), F, {}),
              HasSubstr("x must have the shape (batch, channels, height, width)"));
  EXPECT_THAT(error_of(x, F, {.stride = {1, 1, 1}}),
              HasSubstr("stride must have one value, or one for each of the 2 spatial axes"));
  EXPECT_THAT(error_of(x, F, {.stride = {0}}), HasSubstr("stride must be at least 1"));
  EXPECT_THAT(error_of(x, F, {.groups = 3}),
              HasSubstr("groups must divide out_channels / n = F.size(1) = 2, got 3"));
  EXPECT_THAT(error_of(x, F, {.output_padding = {1}}),
              HasSubstr("output_padding is for a transposed convolution"));
  EXPECT_THAT(error_of(x, F, {}, torch::randn({7})), HasSubstr("bias must have out_channels = 8 values"));
  EXPECT_THAT(error_of(x.to(torch::kDouble), F, {}), HasSubstr("convert one"));
}

// In each of the operators, for each number of axes.
TEST(Convolution, ErrorsSayWhatIsImpossible) {
  using testing::AllOf, testing::HasSubstr, testing::StartsWith;
  const auto refused = [](std::vector<int64_t> image, std::vector<int64_t> kernel,
                          const ConvolutionOptions& options, const std::string& words) {
    std::vector<int64_t> sizes{2, 8};
    sizes.insert(sizes.end(), image.begin(), image.end());
    kernel.insert(kernel.begin(), {4, 2, 2});
    const at::Tensor x = torch::zeros(sizes), F = torch::zeros(kernel), grad = torch::zeros({2, 8, 1, 1});
    const ops::Product product{"quaternion", {}, {}};
    EXPECT_THAT(error_of([&] { ops::convolution(x, F, {}, product, options); }),
                AllOf(StartsWith("convolution: "), HasSubstr(words)));
    EXPECT_THAT(error_of([&] { ops::convolution_with_epilogue(x, F, product, {}, options); }),
                AllOf(StartsWith("convolution_with_epilogue: "), HasSubstr(words)));
    EXPECT_THAT(error_of([&] {
                  ops::convolution_backward(grad, x, F, product, options, {true, true, false});
                }),
                AllOf(StartsWith("convolution_backward: "), HasSubstr(words)));
  };
  const ConvolutionOptions turned{.padding = {4}, .transposed = true};
  refused({5}, {3}, turned,
          "the padding of 4 along spatial axis 0 leaves nothing of the result, for x [2, 8, 5]");
  refused({9, 5}, {3, 3}, turned, "the padding of 4 along spatial axis 1 leaves nothing of the result");
  refused({9, 5, 9}, {3, 3, 3}, turned, "the padding of 4 along spatial axis 1 leaves nothing of the result");
  refused({1, 2}, {1, 2}, {.stride = {2}, .padding = {1, 2}, .transposed = true},
          "the padding of 1 along spatial axis 0 leaves nothing of the result");
  for (const bool transposed : {false, true})
    for (const std::vector<int64_t>& image : {std::vector<int64_t>{0}, {4, 0}, {0, 4}, {4, 0, 4}})
      refused(image, std::vector<int64_t>(image.size(), 1), {.padding = {1}, .transposed = transposed},
              "x must have a pixel or more along each spatial axis, got [2, 8, ");
  refused({4}, {5}, {}, "the kernel reaches over 5 pixels along spatial axis 0, the padded image has 4");
  refused({4, 9, 4}, {3, 3, 3}, {.padding = {1}, .dilation = {1, 1, 3}},
          "the kernel reaches over 7 pixels along spatial axis 2, the padded image has 6");
}

// Images so small that places of the kernel meet nothing but padding, where oneDNN writes no gradient.
TEST(Convolution, PlacesThatMeetPaddingAloneHaveNoGradientInBfloat16) {
  torch::manual_seed(5);
  for (const bool transposed : {false, true})
    for (const char* algebra : {"real", "quaternion"})
      for (const Way way : {Way::materialised, Way::factored})
        for (const auto& [kernel, stride, side] : {std::tuple{3, 2, 1}, {3, 3, 2}, {5, 2, 2}, {7, 3, 3}}) {
          ConvolutionOptions options{.stride = {stride}, .padding = {kernel / 2}, .transposed = transposed};
          options.way = way;
          const int64_t n = algebra == std::string("real") ? 1 : 4, unit = 64 / n;
          const at::Tensor places = torch::randn({2, 64, side}),
                           F = torch::randn({n, unit, unit, kernel}).requires_grad_();
          // Of a transposed convolution what comes out is the small image.
          const int64_t out = (side + 2 * (kernel / 2) - kernel) / stride + 1;
          at::Tensor x = places;
          if (transposed) {
            x = torch::randn({2, 64, out});
            const int64_t least = (out - 1) * stride - 2 * (kernel / 2) + kernel;
            if (side < least || side - least >= stride) continue;
            options.output_padding = {side - least};
          }
          SCOPED_TRACE(std::string(algebra) + ", " + ops::name(way) + ", " + std::to_string(kernel) +
                       (transposed ? ", transposed" : ""));
          const auto gradient = [&](at::ScalarType type) {
            const at::Tensor F_ = F.detach().to(type).requires_grad_(),
                             y = ops::convolution(x.to(type), F_, {}, {algebra, {}, {}}, options);
            return torch::autograd::grad({y.to(torch::kFloat).square().sum()}, {F_})[0].to(torch::kFloat);
          };
          const at::Tensor exact = gradient(torch::kFloat);
          for (int i = 0; i < 8; ++i) torch::full({i + 1, 64, 64, kernel}, NAN, torch::kBFloat16);  // freed
          const at::Tensor rounded = gradient(torch::kBFloat16);
          EXPECT_LT(relative_error(rounded, exact), 0.05);
          EXPECT_TRUE(rounded.masked_select(exact == 0).equal(exact.masked_select(exact == 0)));
          EXPECT_TRUE((exact == 0).any().item<bool>());
        }
}

}  // namespace
}  // namespace quatrain
