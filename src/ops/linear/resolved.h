#pragma once

#include <optional>

#include "ops/map/bilinear_map.h"

namespace quatrain::ops {

/// True where ATen's product, or the composed form, is what `linear` takes for a map on a CPU.
bool is_composed(const BilinearMap& map);

/// `linear` of a constant weight for a number of rows in float32 on a CPU, resolved once: whoever applies it
/// again and again does without the operator's checks, look-ups and tensors. Results that nothing is done
/// with are the operator's, bit for bit. The weight, and all guards that were set, stay as they are while it
/// lives.
class QUATRAIN_API ResolvedLinear {
 public:
  /// None where the operator does not take the engine alone, and where answers are to stand alone
  /// (PlannedRowsGuard) and a row's bits would depend on the number of rows, whatever that is: take the
  /// operator then. alpha, a scalar tensor or undefined, multiplies results, the bias among them.
  static std::optional<ResolvedLinear> of(const at::Tensor& S, const at::Tensor& bias, const Product& product,
                                          Way way, int64_t rows, const at::Tensor& alpha = {});

  /// What becomes of a result: activation(result + residual). The residual lies as the result does.
  struct Then {
    const float* residual = nullptr;
    kernels::cpu::Activation activation = kernels::cpu::Activation::identity;
  };

  /// Rows of x lie side by side, those of y where `to` says.
  void apply(const float* x, const engine::Blocks& to, const Then& then) const;
  /// The same into rows side by side.
  void apply(const float* x, float* y, const Then& then) const;
  void apply(const float* x, float* y) const { apply(x, y, Then()); }

  int64_t in_features() const { return map_.n() * map_.p(); }
  int64_t out_features() const { return map_.n() * map_.m(); }
  int64_t n() const { return map_.n(); }

 private:
  ResolvedLinear(BilinearMap map, int64_t rows, const at::Tensor& bias, const at::Tensor& alpha);

  BilinearMap map_;
  int64_t rows_;
  at::Tensor bias_, scale_;  // float32, contiguous; undefined: none
};

}  // namespace quatrain::ops
