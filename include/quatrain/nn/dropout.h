#pragma once

#include <torch/arg.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/pimpl.h>

#include "quatrain/api.h"

namespace quatrain::nn {

struct QUATRAIN_API DropoutOptions {
  DropoutOptions(double p = 0.5) : p_(p) {}
  /// Probability of dropping, in [0, 1].
  TORCH_ARG(double, p);
  /// Dimension of the hypercomplex numbers on the last axis; used by per_unit.
  TORCH_ARG(int64_t, n) = 1;
  /// Drops whole hypercomplex units (all n components together) instead of single elements.
  TORCH_ARG(bool, per_unit) = false;
};

/// Dropout of (..., n m), scaled by 1/(1 - p): element by element, or per unit, where the n components of a
/// number share one draw. The identity where `training` is false.
QUATRAIN_API at::Tensor dropout(const at::Tensor& x, double p, bool training, int64_t n = 1,
                                bool per_unit = false);

/// Dropout as a module. Shape: (..., n m) -> the same.
class QUATRAIN_API DropoutImpl : public torch::nn::Cloneable<DropoutImpl> {
 public:
  explicit DropoutImpl(DropoutOptions options = {});
  void reset() override;
  void pretty_print(std::ostream& stream) const override;
  at::Tensor forward(const at::Tensor& x);

  DropoutOptions options;
};
TORCH_MODULE(Dropout);

}  // namespace quatrain::nn
