#pragma once

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include <string>
#include <utility>
#include <vector>

#include "ops/reference.h"
#include "quatrain/conv_ops.h"

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

/// A convolution of two or three axes.
struct PlaneCase {
  std::string algebra = "quaternion";
  int64_t units_in = 8, units_out = 16, batch = 2, height = 7, width = 9;
  std::vector<int64_t> kernel{3, 3};
  ops::ConvolutionOptions options{.padding = {1}, .way = ops::Way::factored};
  int64_t depth = 1;  ///< with a kernel of three axes
  torch::Dtype type = torch::kFloat;
};

/// Expects values and gradients as those of H in float64, channels first and last.
inline void expect_plane(const PlaneCase& c, double tolerance = 5e-6) {
  torch::manual_seed(11);
  const int64_t n = algebra::get(c.algebra).n(), g = c.options.groups;
  const auto f64 = torch::kDouble;
  std::vector<int64_t> sizes{n, c.options.transposed ? c.units_in : c.units_out,
                             (c.options.transposed ? c.units_out : c.units_in) / g};
  sizes.insert(sizes.end(), c.kernel.begin(), c.kernel.end());
  std::vector<int64_t> image{c.batch, n * c.units_in};
  if (c.kernel.size() == 3) image.push_back(c.depth);
  image.insert(image.end(), {c.height, c.width});
  const at::Tensor F = torch::randn(sizes, f64).requires_grad_(),
                   bias = torch::randn({n * c.units_out}, f64).requires_grad_(),
                   x = torch::randn(image, f64).requires_grad_();
  const at::Tensor expected = convolution_of_H(x, F, bias, table_of(c.algebra), c.options);
  const at::Tensor g64 = torch::randn_like(expected);
  const auto wanted = torch::autograd::grad({expected}, {x, F, bias}, {g64});
  const auto last = c.kernel.size() == 3 ? at::MemoryFormat::ChannelsLast3d : at::MemoryFormat::ChannelsLast;
  for (const auto format : {at::MemoryFormat::Contiguous, last}) {
    SCOPED_TRACE(format == last ? "channels last" : "channels first");
    const auto single = [&](const at::Tensor& t) { return t.detach().to(c.type).requires_grad_(); };
    const at::Tensor F_ = single(F), b_ = single(bias),
                     x_ = x.detach().to(c.type).contiguous(format).requires_grad_();
    const at::Tensor y = ops::convolution(x_, F_, b_, {c.algebra, {}, {}}, c.options);
    ASSERT_EQ(y.sizes(), expected.sizes());
    EXPECT_TRUE(y.is_contiguous(format));
    EXPECT_LT(relative_error(y, expected), tolerance);
    const auto got = torch::autograd::grad({y}, {x_, F_, b_}, {g64.to(c.type).contiguous(format)});
    for (size_t i = 0; i < 3; ++i)
      EXPECT_LT(relative_error(got[i], wanted[i]), tolerance) << "gradient " << i;
  }
}

}  // namespace quatrain::test
