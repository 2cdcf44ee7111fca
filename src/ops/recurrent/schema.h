#pragma once

#include "ops/recurrent/recurrent.h"

/// The arguments of the registered operators, spelled once: a kernel takes a RecurrenceCall, and is
/// registered as `&recurrence_schema<&kernel>`.
namespace quatrain::ops {

RecurrenceCall make_recurrence_call(const at::Tensor& batch_sizes, at::TensorList S, std::string_view algebra,
                                    at::TensorList A, at::TensorList factors, const Optional& bias,
                                    const Optional& mask, std::string_view cell, bool reverse, bool constant);

using RecurrenceKernel = States (*)(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0,
                                    const Optional& c0, bool keep);
using RecurrenceBackwardKernel = StateGradients (*)(const RecurrenceCall& call, const Upstream& grads,
                                                    const at::Tensor& y, const at::Tensor& kept,
                                                    const at::Tensor& h0, const Optional& c0);

template <RecurrenceKernel kernel>
States recurrence_schema(const at::Tensor& z, const at::Tensor& batch_sizes, const at::Tensor& h0,
                         const Optional& c0, at::TensorList S, std::string_view algebra, at::TensorList A,
                         at::TensorList factors, const Optional& bias, const Optional& mask,
                         std::string_view cell, bool reverse, bool constant, bool keep) {
  return kernel(
      make_recurrence_call(batch_sizes, S, algebra, A, factors, bias, mask, cell, reverse, constant), z, h0,
      c0, keep);
}

template <RecurrenceBackwardKernel kernel>
StateGradients recurrence_backward_schema(const Optional& dy, const Optional& dh, const Optional& dc,
                                          const at::Tensor& y, const at::Tensor& kept,
                                          const at::Tensor& batch_sizes, const at::Tensor& h0,
                                          const Optional& c0, at::TensorList S, std::string_view algebra,
                                          at::TensorList A, at::TensorList factors, const Optional& mask,
                                          std::string_view cell, bool reverse) {
  return kernel(
      make_recurrence_call(batch_sizes, S, algebra, A, factors, std::nullopt, mask, cell, reverse, false),
      {dy, dh, dc}, y, kept, h0, c0);
}

}  // namespace quatrain::ops
