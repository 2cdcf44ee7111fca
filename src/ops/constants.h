#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "ops/map/call.h"
#include "quatrain/algebra.h"

/// Tables and factors of fixed algebras as tensors, made once for each type and device.
namespace quatrain::ops {

/// A (n, n, n).
at::Tensor table_tensor(const algebra::Algebra& algebra, at::ScalarType dtype, at::Device device);

/// U, V, W, each (n, R).
struct FactorTensors {
  at::Tensor U, V, W;
};
FactorTensors factor_tensors(const algebra::Algebra& algebra, at::ScalarType dtype, at::Device device);
/// Those of a call, which has some: of its algebra, or those that it brings.
FactorTensors factor_tensors(const Call& call, at::ScalarType dtype, at::Device device);

/// Values (row by row) as a tensor that serves every mode and outlives the transform in which it is made.
at::Tensor constant_tensor(const std::vector<double>& values, at::IntArrayRef sizes, at::ScalarType dtype,
                           at::Device device);

}  // namespace quatrain::ops
