#pragma once

#include "ops/recurrent/recurrent.h"

/// The arguments of the registered operators, spelled once: a kernel takes a RecurrenceCall, and is
/// registered as `&recurrence_schema<&kernel>`.
namespace quatrain::ops {

RecurrenceCall make_recurrence_call(const at::Tensor& batch_sizes, at::TensorList S, std::string_view algebra,
                                    at::TensorList A, at::TensorList factors, const Optional& bias,
                                    const Optional& mask, std::string_view cell, bool reverse, bool constant);

InputCall make_input_call(const at::Tensor& x, at::TensorList S, std::string_view algebra, at::TensorList A,
                          at::TensorList factors, const Optional& bias, std::string_view way, bool constant);

using LayerKernel = LayerStates (*)(const RecurrenceCall& call, const InputCall& inputs, const at::Tensor& h0,
                                    const Optional& c0);
using RecurrenceKernel = States (*)(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0,
                                    const Optional& c0, bool keep);
using RecurrenceBackwardKernel = StateGradients (*)(const RecurrenceCall& call, const Upstream& grads,
                                                    const at::Tensor& y, const at::Tensor& kept,
                                                    const at::Tensor& h0, const Optional& c0);

template <LayerKernel kernel>
LayerStates recurrent_layer_schema(const at::Tensor& x, const at::Tensor& batch_sizes, const at::Tensor& h0,
                                   const Optional& c0, at::TensorList S_x, at::TensorList S,
                                   std::string_view algebra, const SomeTensors& A_x, const SomeTensors& A,
                                   const SomeTensors& factors_x, const SomeTensors& factors,
                                   const Optional& bias_x, const Optional& bias, const Optional& mask,
                                   std::string_view cell, std::string_view way, bool reverse, bool constant) {
  return kernel(make_recurrence_call(batch_sizes, S, algebra, listed(A), listed(factors), bias, mask, cell,
                                     reverse, constant),
                make_input_call(x, S_x, algebra, listed(A_x), listed(factors_x), bias_x, way, constant), h0,
                c0);
}

template <RecurrenceKernel kernel>
States recurrence_schema(const at::Tensor& z, const at::Tensor& batch_sizes, const at::Tensor& h0,
                         const Optional& c0, at::TensorList S, std::string_view algebra, const SomeTensors& A,
                         const SomeTensors& factors, const Optional& bias, const Optional& mask,
                         std::string_view cell, bool reverse, bool constant, bool keep) {
  return kernel(make_recurrence_call(batch_sizes, S, algebra, listed(A), listed(factors), bias, mask, cell,
                                     reverse, constant),
                z, h0, c0, keep);
}

template <RecurrenceBackwardKernel kernel>
StateGradients recurrence_backward_schema(const Optional& dy, const Optional& dh, const Optional& dc,
                                          const at::Tensor& y, const at::Tensor& kept,
                                          const at::Tensor& batch_sizes, const at::Tensor& h0,
                                          const Optional& c0, at::TensorList S, std::string_view algebra,
                                          const SomeTensors& A, const SomeTensors& factors,
                                          const Optional& mask, std::string_view cell, bool reverse) {
  return kernel(make_recurrence_call(batch_sizes, S, algebra, listed(A), listed(factors), std::nullopt, mask,
                                     cell, reverse, false),
                {dy, dh, dc}, y, kept, h0, c0);
}

}  // namespace quatrain::ops
