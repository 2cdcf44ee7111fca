#pragma once

#include <string_view>
#include <vector>

#include "algebra/tables.h"
#include "quatrain/algebra.h"

/// Where factors come from: data (found numerically, src/algebra/factors/*.json), a formula, or other
/// factors.
namespace quatrain::algebra {

/// One file of src/algebra/factors, as text.
struct EmbeddedFactors {
  std::string_view algebra;
  const char* json;
};
const std::vector<EmbeddedFactors>& embedded_factors();

/// The factors stored for a name; the name must be there.
Factors stored_factors(std::string_view algebra);

/// One product for each entry of the table that is not zero.
Factors trivial_factors(int n, const std::vector<double>& table);

/// Factors of the tensor product: every pair of products is a product.
Factors kronecker(const Factors& outer, const Factors& inner);

/// Factors over another basis, whose element i is the unit `images[i]` of the old one.
Factors relabel(const Factors& factors, const std::vector<Unit>& images);

/// Factors of R[x] / (x^n - wrap) for wrap = 1 or -1 through the roots of x^n = wrap: one product for a real
/// root, three (Gauss) for a pair of complex ones.
Factors fourier_factors(int n, double wrap);

/// Factors of Cl(p, q, r), composed of those of algebras with at most two generators; see factors.cpp.
Factors clifford_factors(int p, int q, int r);

}  // namespace quatrain::algebra
