#pragma once

#include <c10/core/ScalarType.h>

#include <limits>

namespace quatrain::ops {

/// The distance from 1 to the next larger number of a type.
inline double epsilon(c10::ScalarType dtype) {
  switch (dtype) {
    case c10::kDouble:
      return std::numeric_limits<double>::epsilon();
    case c10::kHalf:
      return 0x1p-10;
    case c10::kBFloat16:
      return 0x1p-7;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

}  // namespace quatrain::ops
