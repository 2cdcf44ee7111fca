#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "ops/engine/engine.h"
#include "ops/engine/planner.h"
#include "ops/linear/linear.h"

/// The operator's tensors and its algebra as the raw operands of the engine's passes.
namespace quatrain::ops {

/// What the engine needs of an algebra: made once for a fixed one.
struct Constants {
  std::unique_ptr<engine::Mixings> factors;
  engine::Mixing rows;        ///< of the mixed way, n -> n^2: mixture a n + i holds A[i, a, :]
  engine::Mixing blocks;      ///< of the materialised way, n -> n^2: mixture a n + b holds A[:, a, b]
  engine::Mixing components;  ///< and back, n^2 -> n: mixture i holds A[i, :, :]
};

std::shared_ptr<const Constants> constants(const Call& call);

/// The tensors of one call as matrices.
struct Operands {
  int64_t rows, n, m, p;
  at::Tensor x, S;  // (rows, n p) and (n, m, p), in the type to compute in, last axis with stride 1
  at::ScalarType multiplied_in;  // of the passes

  Operands(const at::Tensor& x, const at::Tensor& S, const Problem& problem, at::ScalarType dtype);

  /// t as (rows, width).
  at::Tensor matrix(const at::Tensor& t, int64_t width, at::ScalarType dtype) const;
  engine::Blocks of_x() const { return of_rows(x, p); }
  engine::Blocks of_S(bool transposed = false) const { return of_blocks(S, transposed); }
  /// Components side by side in each row.
  static engine::Blocks of_rows(const at::Tensor& t, int64_t width, bool transposed = false);
  /// One component after the other.
  static engine::Blocks of_blocks(const at::Tensor& t, bool transposed = false);

  /// The three passes, without their results: y, and of `grad` (rows, n m) the gradients of x and S.
  engine::Pass forward(const engine::Mixings& f) const;
  engine::Pass backward_x(const at::Tensor& grad, const engine::Mixings& f) const;
  engine::Pass backward_S(const at::Tensor& grad, const engine::Mixings& f) const;

 private:
  engine::Pass pass(int64_t M, int64_t N, int64_t K, const engine::Mixings& f) const;
};

/// For a pass's C: in the type asked for, or in float32 where the engine cannot store that.
at::Tensor output(const engine::Pass& pass, at::IntArrayRef sizes, const at::TensorOptions& options);

}  // namespace quatrain::ops
