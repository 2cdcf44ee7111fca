#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "kernels/cpu/groups.h"
#include "kernels/cpu/kernels.h"
#include "quatrain/api.h"

/// The linear mixtures of components and products that a structure tensor's factors are.
namespace quatrain::ops::engine {

/// A sparse linear mixture of components; owns what kernels::cpu::Mix points to.
class QUATRAIN_API Mixing {
 public:
  /// R mixtures of n components: the columns of a factor (n x R, row-major).
  static Mixing into_products(const double* factor, int64_t n, int64_t rank);
  /// n mixtures of R products: the rows of a factor.
  static Mixing from_products(const double* factor, int64_t n, int64_t rank);
  /// Each of `outputs` mixtures has a row of `inputs` coefficients.
  static Mixing from_rows(const double* rows, int64_t outputs, int64_t inputs);
  /// Copies each of so many inputs.
  static Mixing copies(int64_t count);
  /// Those of the mixtures that are named, in rising order. `alone`: each has the same bits whichever others
  /// are named.
  Mixing some(std::span<const int32_t> outputs, bool alone) const;

  kernels::cpu::Mix view() const { return groups_.of(ungrouped()); }

  /// The input that a mixture into products is as it is, so that it need not be made; else -1.
  int32_t plain(int64_t mixture) const { return made_ ? only_input(mixture) : -1; }
  /// The other mixtures, in their order.
  const Mixing& made() const { return made_ ? *made_ : *this; }

 private:
  void add(int32_t source, float coefficient) {
    source_.push_back(source);
    coefficient_.push_back(coefficient);
  }
  /// The input that a mixture is as it is; -1 where it is none.
  int32_t only_input(int64_t mixture) const;
  void end_mixture() { begin_.push_back(static_cast<int32_t>(source_.size())); }
  void group(bool pairs = true) { groups_ = kernels::cpu::Groups(ungrouped(), pairs); }
  kernels::cpu::Mix ungrouped() const {
    return {static_cast<int32_t>(begin_.size()) - 1, begin_.data(), source_.data(), coefficient_.data()};
  }

  std::vector<int32_t> begin_{0}, source_;
  std::vector<float> coefficient_;
  kernels::cpu::Groups groups_;
  std::shared_ptr<const Mixing> made_;  // null where that is all of them
};

/// The mixture that copies each of so many inputs; valid until this thread asks for more.
kernels::cpu::Mix copies_of(int64_t count);

/// How much an output's error grows where both operands of the R products are rounded to a type before they
/// are multiplied, against that of a real layer, which rounds its result alone: root mean squares, for
/// independent inputs and weights of one size that are exact in that type. With |.| the norm of a column,
///
///   sqrt(1 + sum_r (e_r + f_r) |out_r|^2 |left_r|^2 |right_r|^2 / |T|^2)    T[c, j, i] = sum_r out left
///   right
///
/// where e_r is 0 if column r of `left` is a single power of two, so that its mixture needs no rounding, else
/// 1; f_r is the same of `right`. The factors are n x R, row-major.
QUATRAIN_API double rounding_growth(const double* out, const double* left, const double* right, int64_t n,
                                    int64_t rank);

/// The six mixtures of a structure tensor's factors.
class QUATRAIN_API Mixings {
 public:
  /// The factors are n x R, row-major.
  Mixings(const double* U, const double* V, const double* W, int64_t n, int64_t rank);

  const int64_t n, rank;
  const uint64_t number;             ///< no other's in this process: what was made by these is told by it
  const Mixing U_in, V_in, W_in;     ///< n -> R
  const Mixing U_out, V_out, W_out;  ///< R -> n

  /// rounding_growth of the three passes, y, dx and dS, computed when it is first asked for.
  struct Growth {
    double y, dx, dS;
  };
  const Growth& growth() const;

 private:
  const std::vector<double> U_, V_, W_;
  mutable std::once_flag once_;
  mutable Growth growth_{};
};

}  // namespace quatrain::ops::engine
