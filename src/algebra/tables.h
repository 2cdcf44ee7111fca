#pragma once

#include <cstddef>
#include <vector>

namespace quatrain::algebra {

/// A structure tensor while it is built: `at(i, a, b)` is the coefficient of e_a in e_i e_b.
struct Table {
  explicit Table(int n) : n(n), values(static_cast<size_t>(n) * n * n) {}
  double& at(int i, int a, int b) { return values[(static_cast<size_t>(i) * n + a) * n + b]; }
  double at(int i, int a, int b) const { return values[(static_cast<size_t>(i) * n + a) * n + b]; }

  int n;
  std::vector<double> values;
};

/// An element +e_index or -e_index of a basis.
struct Unit {
  int index = 0;
  double sign = 1;
};

/// The product of two units in a table whose products of units are units.
Unit multiply(const Table& table, Unit x, Unit y);

/// Pairs (a, b) of elements of `half` with (a, b)(c, d) = (a c + gamma d* b, d a + b c*), where x* negates
/// all but e_0. gamma = -1 doubles real -> complex -> quaternion -> octonion -> sedenion, gamma = +1 gives
/// the split ones.
Table cayley_dickson(const Table& half, double gamma);

/// real, complex, quaternion, octonion, sedenion for 0 .. 4 doublings; the last one with `last_gamma`.
Table cayley_dickson(int doublings, double last_gamma = -1);

/// The tensor product; component `outer * inner.n + j` is e_outer (x) e_j.
Table kronecker(const Table& outer, const Table& inner);

/// R[x] / (x^n - wrap): wrap = 1 is the cyclic group's algebra, -1 the negacyclic one, 0 and n = 2 the dual
/// numbers.
Table polynomials(int n, double wrap);

/// Cl(p, q, r): p generators of square +1, q of -1, r of 0. Component m is the product of the e_g whose bit g
/// is set in m, in rising order: 1, e1, e2, e12, e3, e13, e23, e123, ...
Table clifford(int p, int q, int r);

/// Real 2 x 2 matrices over the basis e11, e12, e21, e22.
Table mat2();

/// Clifford conjugation's signs: (-1)^(g(g+1)/2) on grade g.
std::vector<double> clifford_conjugation(int generators);

}  // namespace quatrain::algebra
