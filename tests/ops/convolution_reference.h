#pragma once

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <string>
#include <utility>
#include <vector>

#include "ops/reference.h"
#include "orders.h"
#include "quatrain/conv_ops.h"
#include "quatrain/layer_ops.h"

namespace quatrain::test {

/// at::convolution of H = sum_i A_i (x) F_i, by its definition and one einsum; differentiable.
inline at::Tensor convolution_of_H(const at::Tensor& x, const at::Tensor& F, const at::Tensor& bias,
                                   const at::Tensor& A, const ops::ConvolutionOptions& options) {
  const int64_t n = F.size(0), g = options.groups, axes = F.dim() - 3;
  // F_i as (groups, rows of a group, columns, places); the rows are those of y, or (transposed) of x.
  const at::Tensor f = F.reshape({n, g, F.size(1) / g, F.size(2), -1});
  const at::Tensor blocks = options.transposed ? torch::einsum("iab,igrct->gbract", {A, f})
                                               : torch::einsum("iab,igrct->garbct", {A, f});
  std::vector<int64_t> sizes{n * F.size(1), n * F.size(2)};
  for (int64_t axis = 0; axis < axes; ++axis) sizes.push_back(F.size(3 + axis));
  const auto swap = [](const at::Tensor& t, int64_t outer,
                       int64_t inner) {  // channels (outer, inner, ..) -> (inner, outer, ..)
    return t.unflatten(1, {outer, inner, -1}).transpose(1, 2).flatten(1, 3);
  };
  const auto all = [axes](const std::vector<int64_t>& list) {
    return list.size() == 1 ? std::vector<int64_t>(static_cast<size_t>(axes), list[0]) : list;
  };
  at::Tensor y = x.size(0) == 0
                     ? at::Tensor()
                     : at::convolution(swap(x, n, g), blocks.reshape(sizes), {}, all(options.stride),
                                       all(options.padding), all(options.dilation), options.transposed,
                                       all(options.output_padding), g);
  y = swap(y, g, n);
  if (!bias.defined()) return y;
  std::vector<int64_t> shape(static_cast<size_t>(axes + 1), 1);
  shape[0] = -1;
  return y + bias.view(shape);
}

/// A convolution of one to three axes.
struct PlaneCase {
  std::string algebra = "quaternion";
  int64_t units_in = 8, units_out = 16, batch = 2;
  int64_t height = 7, width = 9;  ///< one axis has the width alone
  std::vector<int64_t> kernel{3, 3};
  ops::ConvolutionOptions options{.padding = {1}, .way = ops::Way::factored};
  int64_t depth = 1;  ///< with a kernel of three axes
  torch::Dtype type = torch::kFloat;
  int64_t n = 4;  ///< where the algebra is "learned" or "factored"
};

/// The tensors of a case, in float64.
struct PlaneTensors {
  at::Tensor x, F, bias;
  at::Tensor A;      ///< what is learned of the algebra, if anything is
  at::Tensor table;  ///< of the algebra
  std::vector<at::Tensor> factors;

  explicit PlaneTensors(const PlaneCase& c) {
    const bool learned = c.algebra == "learned", factored = c.algebra == "factored";
    const auto f64 = torch::kDouble;
    const int64_t n = learned || factored ? c.n : algebra::get(c.algebra).n();
    std::vector<int64_t> sizes{n, c.options.transposed ? c.units_in : c.units_out,
                               (c.options.transposed ? c.units_out : c.units_in) / c.options.groups};
    sizes.insert(sizes.end(), c.kernel.begin(), c.kernel.end());
    std::vector<int64_t> image{c.batch, n * c.units_in};
    if (c.kernel.size() == 3) image.push_back(c.depth);
    if (c.kernel.size() >= 2) image.push_back(c.height);
    image.push_back(c.width);
    F = torch::randn(sizes, f64).requires_grad_();
    bias = torch::randn({n * c.units_out}, f64).requires_grad_();
    x = torch::randn(image, f64).requires_grad_();
    if (!learned && !factored) {
      table = table_of(c.algebra);
      return;
    }
    const at::Tensor drawn = torch::randn({3, n, 2 * n}, f64);
    const auto made_of = [](const at::Tensor& f) {
      return torch::einsum("ir,br,ar->iab", {f[0], f[1], f[2]});
    };
    A = (learned ? made_of(drawn) : drawn).requires_grad_();
    table = learned ? A : made_of(A);
    if (learned && c.options.way == ops::Way::factored) factors = {drawn[0], drawn[1], drawn[2]};
  }

  /// Those that have gradients.
  std::vector<at::Tensor> leaves() const {
    std::vector<at::Tensor> all{x, F, bias};
    if (A.defined()) all.push_back(A);
    return all;
  }
};

inline const char* name_of_order(bool last) {
  return last ? "channels last" : "channels first";
}

/// Expects values and gradients as those of H in float64, channels first and last.
inline void expect_plane(const PlaneCase& c, double tolerance = 5e-6) {
  torch::manual_seed(11);
  const PlaneTensors exact(c);
  const at::Tensor expected = convolution_of_H(exact.x, exact.F, exact.bias, exact.table, c.options);
  const at::Tensor g = torch::randn_like(expected);
  const auto wanted = torch::autograd::grad({expected}, exact.leaves(), {g});
  for (const bool last : {false, true}) {
    SCOPED_TRACE(name_of_order(last));
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& leaf : exact.leaves()) leaves.push_back(leaf.detach().to(c.type).requires_grad_());
    leaves[0] = laid(leaves[0].detach(), last).requires_grad_();
    const at::Tensor y =
        ops::convolution(leaves[0], leaves[1], leaves[2],
                         {c.algebra, exact.A.defined() ? leaves[3] : at::Tensor(), exact.factors}, c.options);
    ASSERT_EQ(y.sizes(), expected.sizes());
    EXPECT_TRUE(lies(y, last) || lies(leaves[0], !last));  // that may be in both orders
    EXPECT_LT(relative_error(y, expected), tolerance);
    const auto got = torch::autograd::grad({y}, leaves, {laid(g.to(c.type), last)});
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_EQ(got[i].sizes(), wanted[i].sizes());
      EXPECT_LT(relative_error(got[i], wanted[i]), tolerance) << "gradient " << i;
    }
  }
}

/// Expects values that are finished without a gradient as those of H in float64. Bits of `parts`: scale,
/// shift and residual.
inline void expect_epilogue(const PlaneCase& c, int parts, const std::string& activation,
                            double tolerance = 5e-6) {
  torch::manual_seed(14);
  const at::NoGradGuard no_grad;
  const PlaneTensors exact(c);
  at::Tensor expected = convolution_of_H(exact.x, exact.F, {}, exact.table, c.options);
  const auto part = [&](int bit, const at::Tensor& t) { return parts & bit ? t : at::Tensor(); };
  const at::Tensor scale = part(1, torch::randn({expected.size(1)})),
                   shift = part(2, torch::randn({expected.size(1)})),
                   residual = part(4, torch::randn(expected.sizes()));
  std::vector<int64_t> channels(static_cast<size_t>(expected.dim()) - 1, 1);
  channels[0] = expected.size(1);
  if (scale.defined()) expected = expected * scale.view(channels);
  if (shift.defined()) expected = expected + shift.view(channels);
  if (residual.defined()) expected = expected + residual;
  expected = ops::activation(activation)(expected);
  for (const bool last : {false, true}) {
    SCOPED_TRACE(c10::str(name_of_order(last), ", ", activation, ", parts ", parts));
    const at::Tensor x = laid(exact.x.to(c.type), last);
    const at::Tensor y = ops::convolution_with_epilogue(
        x, exact.F.to(c.type),
        {c.algebra, exact.A.defined() ? exact.A.to(c.type) : at::Tensor(), exact.factors},
        {scale, shift, residual, activation}, c.options);
    ASSERT_EQ(y.sizes(), expected.sizes());
    EXPECT_TRUE(lies(y, last) || lies(x, !last));
    EXPECT_LT(relative_error(y, expected), tolerance);
  }
}

}  // namespace quatrain::test
