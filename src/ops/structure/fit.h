#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace quatrain::ops {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Canonical polyadic decomposition of an n x n x n tensor by Levenberg-Marquardt. The residual is a
/// polynomial in the factors, its Jacobian is structured, and J^T J is made of products of the factors' Gram
/// matrices: nothing of size n^3 x 3nR is built. A penalty mu |x|^2 that decays to zero keeps the columns
/// from growing against each other, which is how such fits diverge.
///
/// The factors stand in one vector, in the order of A's axes: U, W, V, each (n, R) row-major.
class Fit {
 public:
  using Vector = std::vector<double>;

  /// The target has norm 1, row-major, and must outlive the fit.
  Fit(const Vector& target, int64_t n, int64_t rank, Vector start);

  /// Iterates until the error is at rounding, or does not fall any more.
  void run(double tolerance);
  /// Equal column norms in the three factors: the product stays, its rounding is smallest.
  void balance();

  /// Relative error.
  double error() const;
  const Vector& factors() const { return x_; }
  /// sqrt of the condition of J J^T, infinite where singular values differ by more than 1e7.
  double condition() const;

 private:
  const double* at(const Vector& x, int64_t axis, int64_t row) const {
    return x.data() + (axis * n_ + row) * rank_;
  }
  double* at(Vector& x, int64_t axis, int64_t row) const { return x.data() + (axis * n_ + row) * rank_; }
  bool step();
  void kick();
  void lower_penalty(double factor);
  Vector residual(const Vector& x) const;
  Vector gradient() const;
  Vector gram(int64_t axis) const;
  at::Tensor normal_matrix() const;

  int64_t n_, rank_, size_;
  const Vector* target_;
  Vector start_, x_, residual_;
  double error_ = 0;     // |residual|^2
  double mu_ = 1e-2;     // weight of the penalty
  double lambda_ = 1.0;  // damping
};

/// The generic rank of n x n x n tensors, with room for those whose real rank is above the complex one; 0
/// above n = 10, where a fit takes minutes.
int64_t generic_rank(int64_t n);

double squared_norm(const Fit::Vector& x);

/// A random start of the size that a unit tensor's factors have.
Fit::Vector random_start(int64_t n, int64_t rank, at::Generator& generator);

}  // namespace quatrain::ops
