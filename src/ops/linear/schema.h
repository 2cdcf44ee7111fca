#pragma once

#include <tuple>

#include "ops/linear/linear.h"

/// The arguments of the registered operators, spelled once: a kernel takes a Call, and is registered as
/// `&linear_schema<&kernel>`.
namespace quatrain::ops {

using ForwardKernel = at::Tensor (*)(const at::Tensor& x, const at::Tensor& S, const Optional& bias,
                                     const Call& call);
using BackwardKernel = Gradients (*)(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                                     const Call& call, Mask mask, const Optional& products);
using ProductsKernel = std::tuple<at::Tensor, at::Tensor> (*)(const at::Tensor& x, const at::Tensor& S,
                                                              const Optional& bias, const Call& call);
using WayKernel = Way (*)(const at::Tensor& x, const at::Tensor& S, const Call& call);

using Dtype = std::optional<at::ScalarType>;

template <ForwardKernel kernel>
at::Tensor linear_schema(const at::Tensor& x, const at::Tensor& S, const Optional& bias,
                         std::string_view algebra, const Optional& A, const SomeTensors& factors,
                         std::string_view way, Dtype dtype, bool constant) {
  return kernel(x, S, bias, make_call(algebra, A, listed(factors), way, dtype, constant));
}

template <BackwardKernel kernel>
Gradients linear_backward_schema(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                                 std::string_view algebra, const Optional& A, const SomeTensors& factors,
                                 std::string_view way, Dtype dtype, Mask output_mask,
                                 const Optional& products) {
  return kernel(grad, x, S, make_call(algebra, A, listed(factors), way, dtype), output_mask, products);
}

template <ProductsKernel kernel>
std::tuple<at::Tensor, at::Tensor> linear_with_products_schema(const at::Tensor& x, const at::Tensor& S,
                                                               const Optional& bias, std::string_view algebra,
                                                               const Optional& A, std::string_view way,
                                                               Dtype dtype) {
  return kernel(x, S, bias, make_call(algebra, A, {}, way, dtype));
}

template <WayKernel kernel>
std::string planned_way_schema(const at::Tensor& x, const at::Tensor& S, std::string_view algebra,
                               const Optional& A, at::TensorList factors, bool constant) {
  return name(kernel(x, S, make_call(algebra, A, factors, "auto", std::nullopt, constant)));
}

/// The type that autocast has a map of x by S computed in; none where the call names one, or for float64,
/// which stays as it is, as in ATen's own products.
Dtype autocast_dtype(const at::Tensor& x, const at::Tensor& S, const Call& call, c10::DeviceType device);

/// The operators through torch's dispatcher, from a call that was unpacked.
at::Tensor dispatch_linear(const at::Tensor& x, const at::Tensor& S, const Optional& bias, const Call& call);
Gradients dispatch_linear_backward(const at::Tensor& grad, const at::Tensor& x, const at::Tensor& S,
                                   const Call& call, Mask mask, const Optional& products = std::nullopt);
std::tuple<at::Tensor, at::Tensor> dispatch_linear_with_products(const at::Tensor& x, const at::Tensor& S,
                                                                 const Optional& bias, const Call& call);
Way dispatch_planned_way(const at::Tensor& x, const at::Tensor& S, const Call& call);

}  // namespace quatrain::ops
