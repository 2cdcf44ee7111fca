#include "algebra/tables.h"

#include <bit>

namespace quatrain::algebra {

Unit multiply(const Table& table, Unit x, Unit y) {
  for (int a = 0; a < table.n; ++a) {
    const double value = table.at(x.index, a, y.index);
    if (value != 0) return {a, x.sign * y.sign * value};
  }
  return {0, 0};
}

Table cayley_dickson(const Table& half, double gamma) {
  const int m = half.n;
  Table table(2 * m);
  auto conjugate = [](int i) { return i == 0 ? 1.0 : -1.0; };
  for (int i = 0; i < m; ++i) {
    for (int k = 0; k < m; ++k) {
      for (int j = 0; j < m; ++j) {
        table.at(i, k, j) = half.at(i, k, j);                                 // a c
        table.at(m + i, k, m + j) = gamma * conjugate(j) * half.at(j, k, i);  // gamma d* b
        table.at(i, m + k, m + j) = half.at(j, k, i);                         // d a
        table.at(m + i, m + k, j) = conjugate(j) * half.at(i, k, j);          // b c*
      }
    }
  }
  return table;
}

Table cayley_dickson(int doublings, double last_gamma) {
  Table table(1);
  table.values = {1};
  for (int d = 1; d <= doublings; ++d) table = cayley_dickson(table, d == doublings ? last_gamma : -1);
  return table;
}

Table kronecker(const Table& outer, const Table& inner) {
  const int m = inner.n;
  Table table(outer.n * m);
  for (int i = 0; i < table.n; ++i) {
    for (int a = 0; a < table.n; ++a) {
      for (int b = 0; b < table.n; ++b) {
        table.at(i, a, b) = outer.at(i / m, a / m, b / m) * inner.at(i % m, a % m, b % m);
      }
    }
  }
  return table;
}

Table polynomials(int n, double wrap) {
  Table table(n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) table.at(i, (i + j) % n, j) = i + j < n ? 1 : wrap;
  }
  return table;
}

Table clifford(int p, int q, int r) {
  Table table(1 << (p + q + r));
  for (int i = 0; i < table.n; ++i) {
    for (int j = 0; j < table.n; ++j) {
      int swaps = 0;  // that bring the generators of e_i e_j into rising order
      for (int rest = i >> 1; rest != 0; rest >>= 1) swaps += std::popcount(static_cast<unsigned>(rest & j));
      double value = swaps % 2 == 0 ? 1 : -1;
      for (int g = 0; g < p + q + r; ++g) {
        if ((i & j) >> g & 1) value *= g < p ? 1 : g < p + q ? -1 : 0;
      }
      table.at(i, i ^ j, j) = value;
    }
  }
  return table;
}

Table mat2() {
  Table table(4);
  for (int row = 0; row < 2; ++row) {
    for (int inner = 0; inner < 2; ++inner) {
      for (int column = 0; column < 2; ++column) {
        table.at(2 * row + inner, 2 * row + column, 2 * inner + column) = 1;
      }
    }
  }
  return table;
}

std::vector<double> clifford_conjugation(int generators) {
  std::vector<double> signs(size_t{1} << generators);
  for (size_t blade = 0; blade < signs.size(); ++blade) {
    const int grade = std::popcount(blade);
    signs[blade] = grade * (grade + 1) / 2 % 2 == 0 ? 1 : -1;
  }
  return signs;
}

}  // namespace quatrain::algebra
