#pragma once

#include "quatrain/nn/algebra_spec.h"

namespace quatrain::nn {

/// A module that multiplies its inputs with each other in an algebra. With another algebra these products are
/// others, which no weights behind them make up for: fill_nearest() refuses it, unless both have one algebra.
class QUATRAIN_API MultipliesInputs {
 public:
  virtual ~MultipliesInputs() = default;
  virtual const AlgebraSpec& algebra_of_products() const = 0;

 protected:
  MultipliesInputs() = default;
  MultipliesInputs(const MultipliesInputs&) = default;
  MultipliesInputs& operator=(const MultipliesInputs&) = default;
};

}  // namespace quatrain::nn
