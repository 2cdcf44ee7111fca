#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "ops/engine.h"

/// Factors of learned structure tensors, followed from step to step while A trains.
///
/// A layer whose A is learned runs on factors A[i, a, b] = sum_r U[i, r] W[a, r] V[b, r] that are held beside
/// A, by its storage: whoever shares A shares them. After an optimizer step a few Newton iterations make them
/// exact again. The gradient of A follows from theirs, which the passes give almost free: with
/// J = dA/d(U, V, W) of full row rank, J^T dA = (dU, dV, dW), so dA = (J J^T)^-1 J (dU, dV, dW).
///
/// That fails silently where J is nearly rank deficient, as it is at the quaternions' own factors. So factors
/// are sound only where A's relative error is below 1e-6 and J's condition below 1e3; else fresh ones are
/// sought, at the generic rank and up to two above; else the step runs on H, and is counted.
namespace quatrain::ops::structure {

/// Sound factors of the present values of A. Immutable, so that a backward pass may keep it.
struct Factors {
  int64_t n = 0, rank = 0;
  std::vector<double> U, V, W;                     ///< each n x R
  at::Tensor triangle;                             ///< lower Cholesky factor of J J^T, n^3 x n^3
  double scale = 1;                                ///< |A|: the factors held are those of A / |A|
  std::shared_ptr<const engine::Mixings> mixings;  ///< of A itself
};

/// A small tensor's values, row-major.
std::vector<double> values_of(const at::Tensor& t);

/// The generic rank of n x n x n where factors are followed (n = 2 .. 8), else 0.
int64_t followed_rank(int64_t n);

/// Factors for A's present values, moved there; null where this step must run on H. A tensor that is met for
/// the first time runs on H, since temporaries never come again; not so where the caller insists.
std::shared_ptr<const Factors> follow(const at::Tensor& A, bool insist = false);

/// What `follow` holds, if it fits A's present values; does no work.
std::shared_ptr<const Factors> find(const at::Tensor& A);

/// dA (n, n, n), float64, from the gradients of the factors of A itself, each n x R.
at::Tensor gradient(const Factors& factors, const std::vector<float>& dU, const std::vector<float>& dV,
                    const std::vector<float>& dW);

}  // namespace quatrain::ops::structure
