#pragma once

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

}  // namespace quatrain::test
