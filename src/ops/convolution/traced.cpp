// Convolutions through H in plain differentiable ATen calls, and how its blocks lie in at::convolution's
// order.

#include <ATen/TensorOperators.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>

#include "ops/convolution/convolution.h"

namespace quatrain::ops {

namespace {

/// (n, groups, rows of a group, n, columns, kernel...) of the blocks of sum_i A_i (x) F_i: components of the
/// result first.
std::vector<c10::SymInt> block_sizes(const at::Tensor& F, const ConvolutionCall& call) {
  const c10::SymInt n = F.sym_size(0);
  std::vector<c10::SymInt> sizes{n, call.groups, F.sym_size(1) / call.groups, n, F.sym_size(2)};
  for (int64_t axis = 3; axis < F.dim(); ++axis) sizes.push_back(F.sym_size(axis));
  return sizes;
}

/// To (groups, n, rows, n, columns, kernel...), the components of the rows first: of y, or (transposed) of x.
std::vector<int64_t> block_order(const at::Tensor& F, const ConvolutionCall& call) {
  std::vector<int64_t> order =
      call.transposed ? std::vector<int64_t>{1, 3, 2, 0, 4} : std::vector<int64_t>{1, 0, 2, 3, 4};
  for (int64_t axis = 3; axis < F.dim(); ++axis) order.push_back(axis + 2);
  return order;
}

at::Tensor swapped(const at::Tensor& x, int64_t outer, int64_t inner) {
  if (outer == 1 || inner == 1) return x;
  // By reshape alone, which batched gradients go through.
  const std::vector<c10::SymInt> whole = x.sym_sizes().vec();
  std::vector<c10::SymInt> parts{whole[0], outer, inner, whole[1] / (outer * inner)};
  parts.insert(parts.end(), whole.begin() + 2, whole.end());
  return x.reshape_symint(parts).transpose(1, 2).reshape_symint(whole);
}

/// Sets the gradient of a kernel to zero where it meets nothing but padding, as on an image smaller than it.
/// oneDNN leaves it unwritten there in types of 16 bits, for torch's own layers and under torch.func as well.
void clear_unmet(const at::Tensor& dH, const at::Tensor& image, const at::Tensor& places,
                 const ConvolutionCall& call) {
  if (!dH.is_cpu() || !at::isReducedFloatingType(dH.scalar_type())) return;
  for (const at::Tensor* t : {&dH, &image, &places})
    if (t->unsafeGetTensorImpl()->has_symbolic_sizes_strides()) return;
  for (int64_t axis = 2; axis < dH.dim(); ++axis) {
    const auto i = static_cast<size_t>(axis - 2);
    for (int64_t tap = 0; tap < dH.size(axis); ++tap) {
      bool met = false;
      for (int64_t place = 0; place < places.size(axis) && !met; ++place) {
        const int64_t pixel = place * call.stride[i] + tap * call.dilation[i] - call.padding[i];
        met = pixel >= 0 && pixel < image.size(axis);
      }
      if (!met) dH.select(axis, tap).zero_();
    }
  }
}

}  // namespace

at::Tensor as_matrices(const at::Tensor& F) {
  c10::SymInt columns = 1;
  for (int64_t axis = 2; axis < F.dim(); ++axis) columns = columns * F.sym_size(axis);
  return F.reshape_symint({F.sym_size(0), F.sym_size(1), columns});
}

at::Tensor expanded_kernel(const at::Tensor& F, const ConvolutionCall& call) {
  const c10::SymInt n = F.sym_size(0);
  std::vector<c10::SymInt> sizes{n * F.sym_size(1), n * F.sym_size(2)};
  for (int64_t axis = 3; axis < F.dim(); ++axis) sizes.push_back(F.sym_size(axis));
  return traced::materialise(as_matrices(F), call.map)
      .reshape_symint(block_sizes(F, call))
      .permute(block_order(F, call))
      .reshape_symint(sizes);
}

at::Tensor gradient_of_blocks(const at::Tensor& dH, const at::Tensor& F, const ConvolutionCall& call) {
  const std::vector<c10::SymInt> sizes = block_sizes(F, call);
  const std::vector<int64_t> order = block_order(F, call);
  std::vector<c10::SymInt> moved;
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    moved.push_back(sizes[static_cast<size_t>(order[i])]);
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  const c10::SymInt n = F.sym_size(0);
  return dH.reshape_symint(moved).permute(back).reshape_symint(
      {n * F.sym_size(1), n * as_matrices(F).sym_size(2)});
}

at::Tensor by_group(const at::Tensor& x, int64_t n, int64_t groups) {
  return swapped(x, n, groups);
}

at::Tensor by_component(const at::Tensor& y, int64_t n, int64_t groups) {
  return swapped(y, groups, n);
}

at::Tensor convolution_with(const at::Tensor& H, const at::Tensor& x, int64_t n, const Optional& bias,
                            const ConvolutionCall& call) {
  const at::ScalarType dtype = H.scalar_type();
  const Optional b = given(bias) ? Optional(by_group(bias->to(dtype).unsqueeze(0), n, call.groups).squeeze(0))
                                 : std::nullopt;
  return by_component(at::convolution(by_group(x.to(dtype), n, call.groups), H, b, call.stride, call.padding,
                                      call.dilation, call.transposed, call.output_padding, call.groups),
                      n, call.groups);
}

std::pair<at::Tensor, at::Tensor> gradients_with(const at::Tensor& H, const at::Tensor& grad,
                                                 const at::Tensor& x, int64_t groups, bool of_x, bool of_H,
                                                 const ConvolutionCall& call) {
  auto [dx, dH, none] =
      at::convolution_backward(grad, x, H, std::nullopt, call.stride, call.padding, call.dilation,
                               call.transposed, call.output_padding, groups, {of_x, of_H, false});
  if (of_H) clear_unmet(dH, call.transposed ? grad : x, call.transposed ? x : grad, call);
  return {dx, dH};
}

namespace traced {

at::Tensor convolution(const at::Tensor& x, const at::Tensor& F, const Optional& bias,
                       const ConvolutionCall& call) {
  check_convolution("convolution", x, F, call);
  check_convolution_bias(bias, F, call);
  return convolution_with(expanded_kernel(F, call).to(call.map.compute_dtype(x)), x, F.size(0), bias, call);
}

Gradients convolution_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& F,
                               const ConvolutionCall& call, Mask mask) {
  check_convolution("convolution_backward", x, F, call);
  check_convolution_grad(grad, x, F, call);
  const at::ScalarType dtype = call.map.compute_dtype(x);
  const int64_t n = F.size(0);
  const bool of_H = mask[1] || mask[2];
  const auto [dx, dH] =
      gradients_with(expanded_kernel(F, call).to(dtype), by_group(grad.to(dtype), n, call.groups),
                     by_group(x.to(dtype), n, call.groups), call.groups, mask[0], of_H, call);
  at::Tensor dF, dA;
  if (of_H) {
    at::Tensor dS;
    std::tie(dS, dA) =
        weight_gradients(gradient_of_blocks(dH, F, call), as_matrices(F), call.map, mask[1], mask[2]);
    if (mask[1]) dF = dS.reshape_symint(F.sym_sizes());
  }
  return {mask[0] ? by_component(dx, n, call.groups).to(x.scalar_type()) : at::Tensor(), dF, dA};
}

}  // namespace traced

}  // namespace quatrain::ops
