#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "ops/engine/engine.h"

/// Factors of one learned structure tensor: how they follow it, and what their gradients say of its own.
///
/// With J = dA/d(U, V, W) of full row rank, J^T dA = (dU, dV, dW), so dA = (J J^T)^-1 J (dU, dV, dW), and a
/// Newton step of least movement to a new A is J^T (J J^T)^-1 (A_new - A). That fails silently where J is
/// nearly rank deficient, as it is at the quaternions' own factors. So factors are sound only where A's
/// relative error is below 1e-6 and J's condition below 1e3.
namespace quatrain::ops::structure {

/// Factors of A / |A|, and what was made of them. Immutable once they are held, so that a backward pass may
/// keep them.
struct Factors {
  using Vector = std::vector<double>;

  int64_t n = 0, rank = 0;
  Vector U, V, W;                                  ///< each n x R
  double scale = 1;                                ///< |A|
  std::shared_ptr<const engine::Mixings> mixings;  ///< of A itself

  /// (J J^T)^-1 of the factors when it was last renewed, n^3 x n^3 in float32: it preconditions. Undefined,
  /// as is `weakest`, of factors that were stored: who moves them or takes A's gradient makes it.
  at::Tensor inverse;
  Vector base_U, base_V, base_W;  ///< those factors
  at::Tensor weakest;             ///< J's weakest direction there, a unit vector of n^3 values in float64
  double least = 0;               ///< J's singular value along it, squared
};

/// The tensor (n, n, n) of factors (n, R): A[i, a, b] = sum_r U[i, r] W[a, r] V[b, r].
std::vector<double> product_of(const std::vector<double>& U, const std::vector<double>& V,
                               const std::vector<double>& W, int64_t n, int64_t rank);

/// The best conditioned of a few seeded solutions for a target of norm 1, at the generic rank or up to two
/// above; null where none is sound.
std::shared_ptr<Factors> solve_afresh(const std::vector<double>& target, int64_t n);

/// Moves factors to a target of norm 1. True where they are sound for it.
bool follow_to(Factors& factors, const std::vector<double>& target);

/// Makes the inverse of `factors` at its base; false where they are not sound there.
bool restore(Factors& factors);

/// Makes the mixtures for A = scale times the tensor of the factors.
void finish(Factors& factors, double scale);

/// Least ratio of the smallest to the largest singular value of the three unfoldings of a tensor.
double spread(const std::vector<double>& A, int64_t n);

/// dA (n, n, n), float64, from the gradients of the factors of A itself, each n x R; undefined where it
/// cannot be had from them, as where they are not finite.
at::Tensor gradient(const Factors& factors, const std::vector<float>& dU, const std::vector<float>& dV,
                    const std::vector<float>& dW);

}  // namespace quatrain::ops::structure
