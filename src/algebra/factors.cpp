#include "algebra/factors.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>

namespace quatrain::algebra {
namespace {

Factors empty_factors(int n, int rank) {
  const size_t size = static_cast<size_t>(n) * rank;
  return {n, rank, std::vector<double>(size), std::vector<double>(size), std::vector<double>(size)};
}

// An algebra with anticommuting generators, each a unit of its basis.
struct Model {
  Table table;
  Factors factors;
  std::vector<Unit> generators;
};

// Over the blades of the generators, as clifford() orders them.
Factors factors_over_blades(const Model& model) {
  std::vector<Unit> images(model.table.n);
  for (int blade = 0; blade < model.table.n; ++blade) {
    for (size_t g = 0; g < model.generators.size(); ++g) {
      if (blade >> g & 1) images[blade] = multiply(model.table, images[blade], model.generators[g]);
    }
  }
  return relabel(model.factors, images);
}

// With w = f1 f2 of an algebra of two generators, the e_i (x) w, 1 (x) f1 and 1 (x) f2 anticommute, and (e_i
// (x) w)^2 = e_i^2 w^2. So Cl(p,q) (x) Cl(1,1) = Cl(p+1,q+1), Cl(0,p) (x) Cl(2,0) = Cl(p+2,0) and Cl(q,0) (x)
// Cl(0,2) = Cl(0,q+2).
Model clifford_model(int p, int q) {
  switch (8 * p + q) {
    case 0:
      return {cayley_dickson(0), trivial_factors(1, {1}), {}};
    case 1:
      return {cayley_dickson(1), stored_factors("complex"), {{1}}};
    case 8:
      return {cayley_dickson(1, 1), fourier_factors(2, 1), {{1}}};
    case 2:
      return {cayley_dickson(2), stored_factors("quaternion"), {{1}, {2}}};
    case 9:
      return {cayley_dickson(2, 1), stored_factors("split_quaternion"), {{2}, {1}}};
    case 16:
      return {cayley_dickson(2, 1), stored_factors("split_quaternion"), {{2}, {3}}};
    default:
      break;
  }
  const bool mixed = p > 0 && q > 0;
  const Model first =
      mixed ? clifford_model(p - 1, q - 1) : clifford_model(q == 0 ? 0 : q - 2, p == 0 ? 0 : p - 2);
  const Model second = mixed ? clifford_model(1, 1) : clifford_model(p == 0 ? 0 : 2, q == 0 ? 0 : 2);
  const Unit f1 = second.generators[0], f2 = second.generators[1], w = multiply(second.table, f1, f2);
  std::vector<Unit> generators;
  for (const Unit& e : first.generators)
    generators.push_back({e.index * second.table.n + w.index, e.sign * w.sign});
  generators.insert(mixed ? generators.begin() + p - 1 : generators.end(),
                    f1);  // those of square +1 come first
  generators.push_back(f2);
  return {kronecker(first.table, second.table), kronecker(first.factors, second.factors), generators};
}

// One more generator e with e^2 = 0: (a + b e)(c + d e) = a c + (a d + b c') e, where c' negates the odd
// grades. Three products.
Factors null_extension(const Factors& f) {
  Factors result = empty_factors(2 * f.n, 3 * f.rank);
  for (int i = 0; i < f.n; ++i) {
    const double odd = std::popcount(static_cast<unsigned>(i)) % 2 == 0 ? 1 : -1;
    for (int r = 0; r < f.rank; ++r) {
      const size_t from = static_cast<size_t>(i) * f.rank + r;
      auto at = [&](int half, int product) {
        return (static_cast<size_t>(half) * f.n + i) * result.rank + static_cast<size_t>(product) * f.rank +
               r;
      };
      result.U[at(0, 0)] = result.U[at(0, 1)] = result.U[at(1, 2)] = f.U[from];
      result.V[at(0, 0)] = result.V[at(1, 1)] = f.V[from];
      result.V[at(0, 2)] = odd * f.V[from];
      result.W[at(0, 0)] = result.W[at(1, 1)] = result.W[at(1, 2)] = f.W[from];
    }
  }
  return result;
}

}  // namespace

Factors stored_factors(std::string_view algebra) {
  for (const auto& entry : embedded_factors()) {
    if (entry.algebra != algebra) continue;
    const auto json = nlohmann::json::parse(entry.json);
    Factors factors = empty_factors(json.at("n"), json.at("rank"));
    for (auto [key, values] : {std::pair{"U", &factors.U}, {"V", &factors.V}, {"W", &factors.W}}) {
      values->clear();
      for (const auto& row : json.at(key)) {
        for (const auto& value : row) values->push_back(value);
      }
    }
    return factors;
  }
  throw std::invalid_argument("algebra: no factors are stored for " + std::string(algebra));
}

Factors trivial_factors(int n, const std::vector<double>& table) {
  const auto rank = std::count_if(table.begin(), table.end(), [](double value) { return value != 0; });
  Factors factors = empty_factors(n, static_cast<int>(rank));
  size_t r = 0;
  for (size_t entry = 0; entry < table.size(); ++entry) {
    if (table[entry] == 0) continue;
    factors.U[entry / n / n * rank + r] = 1;
    factors.W[entry / n % n * rank + r] = table[entry];
    factors.V[entry % n * rank + r] = 1;
    ++r;
  }
  return factors;
}

Factors kronecker(const Factors& outer, const Factors& inner) {
  Factors result = empty_factors(outer.n * inner.n, outer.rank * inner.rank);
  auto fill = [&](const std::vector<double>& x, const std::vector<double>& y, std::vector<double>& out) {
    for (int i = 0; i < result.n; ++i) {
      for (int r = 0; r < result.rank; ++r) {
        out[static_cast<size_t>(i) * result.rank + r] =
            x[static_cast<size_t>(i / inner.n) * outer.rank + r / inner.rank] *
            y[static_cast<size_t>(i % inner.n) * inner.rank + r % inner.rank];
      }
    }
  };
  fill(outer.U, inner.U, result.U);
  fill(outer.V, inner.V, result.V);
  fill(outer.W, inner.W, result.W);
  return result;
}

Factors relabel(const Factors& factors, const std::vector<Unit>& images) {
  Factors result = empty_factors(factors.n, factors.rank);
  for (auto [from, to] :
       {std::pair{&factors.U, &result.U}, {&factors.V, &result.V}, {&factors.W, &result.W}}) {
    for (int i = 0; i < factors.n; ++i) {
      for (int r = 0; r < factors.rank; ++r) {
        (*to)[static_cast<size_t>(i) * factors.rank + r] =
            images[i].sign * (*from)[static_cast<size_t>(images[i].index) * factors.rank + r];
      }
    }
  }
  return result;
}

Factors fourier_factors(int n, double wrap) {
  // Halves and whole numbers are exact, so that products by 0 and 1 are seen as such.
  auto exact = [](double x) {
    return std::abs(x - std::round(2 * x) / 2) < 1e-14 ? std::round(2 * x) / 2 : x;
  };
  // The roots are exp(i pi h / n), h even for wrap = 1 and odd for -1. A real polynomial takes conjugate
  // values at conjugate roots, so half of them do: y_k = sum over roots of weight Re(value root^-k), weight
  // 1/n (real) or 2/n (a pair).
  std::vector<int> roots;
  for (int h = wrap > 0 ? 0 : 1; h <= n; h += 2) roots.push_back(h);
  auto is_real = [n](int h) { return h % n == 0; };
  int rank = 0;
  for (int h : roots) rank += is_real(h) ? 1 : 3;
  Factors f = empty_factors(n, rank);
  for (int k = 0; k < n; ++k) {
    size_t at = static_cast<size_t>(k) * rank;
    for (int h : roots) {
      const double turn = std::numbers::pi * (static_cast<long>(h) * k % (2 * n)) / n;
      const double re = exact(std::cos(turn)), im = exact(std::sin(turn));
      if (is_real(h)) {
        f.U[at] = re / n;
        f.V[at] = f.W[at] = re;
        ++at;
        continue;
      }
      // Gauss: with x = a + bi, y = c + di: m1 = (a + b) c, m2 = a (d - c), m3 = b (c + d); re = m1 - m3, im
      // = m1 + m2.
      const double scale = 2.0 / n;
      f.U[at] = (re + im) * scale, f.U[at + 1] = re * scale, f.U[at + 2] = im * scale;
      f.V[at] = re, f.V[at + 1] = im - re, f.V[at + 2] = re + im;
      f.W[at] = re + im, f.W[at + 1] = im,
      f.W[at + 2] = -re;  // Re((re_y + i im_y)(re - i im)) = re_y re + im_y im
      at += 3;
    }
  }
  return f;
}

Factors clifford_factors(int p, int q, int r) {
  Factors factors = factors_over_blades(clifford_model(p, q));
  for (int i = 0; i < r; ++i) factors = null_extension(factors);
  return factors;
}

}  // namespace quatrain::algebra
