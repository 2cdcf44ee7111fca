#pragma once

#include <vector>

#include "quatrain/algebra.h"

namespace quatrain::algebra {

/// Computes the properties from the structure tensor; src/algebra/properties.cpp says how each is decided.
Properties compute_properties(int n, const std::vector<double>& table);

}  // namespace quatrain::algebra
