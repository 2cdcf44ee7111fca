#include "algebra/properties.h"

#include <algorithm>
#include <cmath>
#include <span>

// Every property is an identity between polynomials in the components, so it is decided on the basis elements
// and not by samples. Sums of table entries are compared to 1e-10 of the largest term, for tables that are
// not of whole numbers.
//
// Division: a real division algebra has dimension 1, 2, 4 or 8. It is proved by a positive definite form q
// and a number c > 0 with q(xy) = c q(x) q(y): then xy = 0 only if x = 0 or y = 0. Two forms are tried: the
// Euclidean norm, and the generic norm (t(x)^2 - t(x^2)) / 2 with t(x) = 2/n trace(y -> xy). The second
// decides every alternative algebra with an identity, because such a division algebra is R, C, H or O in some
// basis (Zorn) and that is their norm. Other algebras of dimension 2, 4 and 8 may be division algebras
// without our knowing it.
namespace quatrain::algebra {
namespace {

constexpr double kTolerance = 1e-10;

class Checker {
 public:
  Checker(int n, const std::vector<double>& table)
      : n_(n), table_(table), products_(static_cast<size_t>(n) * n) {
    for (int i = 0; i < n; ++i) {
      for (int a = 0; a < n; ++a) {
        for (int b = 0; b < n; ++b) {
          const double value = at(i, a, b);
          if (value != 0) products_[i * n + b].push_back({a, value});
          largest_ = std::max(largest_, std::abs(value));
        }
      }
    }
  }

  bool unital() const {
    for (int i = 0; i < n_; ++i) {
      for (int a = 0; a < n_; ++a) {
        const double expected = i == a ? 1 : 0;
        if (std::abs(at(0, a, i) - expected) > kTolerance || std::abs(at(i, a, 0) - expected) > kTolerance)
          return false;
      }
    }
    return true;
  }

  bool commutative() const {
    for (int i = 0; i < n_; ++i) {
      for (int a = 0; a < n_; ++a) {
        for (int b = 0; b < i; ++b) {
          if (std::abs(at(i, a, b) - at(b, a, i)) > kTolerance * largest_) return false;
        }
      }
    }
    return true;
  }

  bool associative() const {
    return for_all_triples(
        [this](int i, int j, int k, std::vector<double>& sum) { add_associator(i, j, k, sum); });
  }

  // Linearised: the associator changes sign when its first two arguments, or its last two, are exchanged.
  bool alternative() const {
    return for_all_triples([this](int i, int j, int k, std::vector<double>& sum) {
             add_associator(i, j, k, sum);
             add_associator(j, i, k, sum);
           }) &&
           for_all_triples([this](int i, int j, int k, std::vector<double>& sum) {
             add_associator(i, j, k, sum);
             add_associator(i, k, j, sum);
           });
  }

  // The c of q(xy) = c q(x) q(y) for the form q(x) = x^T Q x with Q[0, 0] > 0; 0 where there is none.
  double composition(const std::vector<double>& q) const {
    // pairing(i, b, j, d) = (e_i e_b)^T Q (e_j e_d); the coefficient of x_i x_j y_b y_d on both sides:
    auto pairing = [&](int i, int b, int j, int d) {
      double sum = 0;
      for (const auto& [a, x] : product(i, b)) {
        for (const auto& [c, y] : product(j, d)) sum += x * q[a * n_ + c] * y;
      }
      return sum;
    };
    const double c = pairing(0, 0, 0, 0) / (q[0] * q[0]);
    double scale = 0;
    for (double value : q) scale = std::max(scale, std::abs(value));
    const double tolerance = kTolerance * std::abs(c) * scale * scale;
    for (int i = 0; i < n_; ++i) {
      for (int j = 0; j <= i; ++j) {
        for (int b = 0; b < n_; ++b) {
          for (int d = 0; d <= b; ++d) {
            const double left = pairing(i, b, j, d) + pairing(i, d, j, b);
            if (!(std::abs(left - 2 * c * q[i * n_ + j] * q[b * n_ + d]) <= tolerance)) return 0;
          }
        }
      }
    }
    return c;
  }

  std::vector<double> euclidean_form() const {
    std::vector<double> q(static_cast<size_t>(n_) * n_);
    for (int i = 0; i < n_; ++i) q[i * n_ + i] = 1;
    return q;
  }

  std::vector<double> generic_form() const {
    std::vector<double> trace(n_), q(static_cast<size_t>(n_) * n_);
    for (int i = 0; i < n_; ++i) {
      for (int a = 0; a < n_; ++a) trace[i] += 2.0 / n_ * at(i, a, a);
    }
    for (int i = 0; i < n_; ++i) {
      for (int j = 0; j < n_; ++j) {
        double of_products = 0;
        for (int a = 0; a < n_; ++a) of_products += (at(i, a, j) + at(j, a, i)) * trace[a];
        q[i * n_ + j] = (trace[i] * trace[j] - of_products / 2) / 2;
      }
    }
    return q;
  }

 private:
  struct Term {
    int component;
    double value;
  };

  double at(int i, int a, int b) const { return table_[(static_cast<size_t>(i) * n_ + a) * n_ + b]; }
  std::span<const Term> product(int i, int b) const { return products_[i * n_ + b]; }

  void add_associator(int i, int j, int k, std::vector<double>& sum) const {
    for (const auto& [c, x] : product(i, j)) {
      for (const auto& [a, y] : product(c, k)) sum[a] += x * y;
    }
    for (const auto& [c, x] : product(j, k)) {
      for (const auto& [a, y] : product(i, c)) sum[a] -= x * y;
    }
  }

  template <typename Add>
  bool for_all_triples(const Add& add) const {
    std::vector<double> sum(n_);
    for (int i = 0; i < n_; ++i) {
      for (int j = 0; j < n_; ++j) {
        for (int k = 0; k < n_; ++k) {
          std::fill(sum.begin(), sum.end(), 0.0);
          add(i, j, k, sum);
          for (double value : sum) {
            if (std::abs(value) > kTolerance * largest_ * largest_) return false;
          }
        }
      }
    }
    return true;
  }

  int n_;
  const std::vector<double>& table_;
  std::vector<std::vector<Term>> products_;  // of e_i and e_b at i n + b
  double largest_ = 0;
};

// By the pivots of an elimination.
bool positive_definite(int n, std::vector<double> q) {
  double scale = 0;
  for (double value : q) scale = std::max(scale, std::abs(value));
  for (int p = 0; p < n; ++p) {
    const double pivot = q[p * n + p];
    if (!(pivot > kTolerance * scale)) return false;
    for (int i = p + 1; i < n; ++i) {
      for (int j = p + 1; j < n; ++j) q[i * n + j] -= q[i * n + p] * q[p * n + j] / pivot;
    }
  }
  return true;
}

}  // namespace

Properties compute_properties(int n, const std::vector<double>& table) {
  const Checker checker(n, table);
  Properties properties;
  properties.unital = checker.unital();
  properties.commutative = checker.commutative();
  properties.associative = checker.associative();
  properties.alternative = properties.associative || checker.alternative();
  if (n == 1 || n == 2 || n == 4 || n == 8) {
    const double c = checker.composition(checker.euclidean_form());
    properties.norm_multiplicative = std::abs(c - 1) <= kTolerance;
    const auto generic = checker.generic_form();
    properties.division = c > 0 || (positive_definite(n, generic) && checker.composition(generic) > 0);
  }
  return properties;
}

}  // namespace quatrain::algebra
