#pragma once

#include <c10/util/Exception.h>

#include <stdexcept>
#include <string_view>

#include "quatrain/algebra.h"

namespace quatrain::ops {

/// The algebra of a name. An unknown one is an error of the function named.
inline const algebra::Algebra& find_algebra(const char* function, std::string_view name) {
  try {
    return algebra::get(name);
  } catch (const std::invalid_argument& error) {
    TORCH_CHECK_VALUE(false, function, ": ", error.what());
  }
}

}  // namespace quatrain::ops
