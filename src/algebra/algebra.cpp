#include "quatrain/algebra.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "algebra/factors.h"
#include "algebra/properties.h"
#include "algebra/signature.h"
#include "support/text.h"

namespace quatrain::algebra {
namespace {

std::string show(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

[[noreturn]] void refuse(const std::string& name, const std::string& what) {
  throw std::invalid_argument("algebra " + shorten(name) + ": " + what);
}

void check_table(const std::string& name, int n, const std::vector<double>& table) {
  if (n < 1 || n > kMaxDimension) {
    refuse(name, "n must be from 1 to " + std::to_string(kMaxDimension) + ", got " + std::to_string(n));
  }
  const size_t expected = static_cast<size_t>(n) * n * n;
  if (table.size() != expected) {
    refuse(name, "the table must have n^3 = " + std::to_string(expected) +
                     " entries for n = " + std::to_string(n) + ", got " + std::to_string(table.size()));
  }
  double largest = 0;
  for (const double value : table) {
    if (!std::isfinite(value)) refuse(name, "the entries of the table must be finite, got " + show(value));
    largest = std::max(largest, std::abs(value));
  }
  if (largest == 0) refuse(name, "the table must have an entry that is not zero");
  // Beyond these, products of entries leave what float32 holds, and weights are drawn as zeros.
  if (largest < 1e-6 || largest > 1e6)
    refuse(name,
           "the largest entry of the table must be of a size from 1e-06 to 1e+06, got " + show(largest));
}

void check_factors(const std::string& name, const Factors& factors, const std::vector<double>& table) {
  double largest = 0;
  for (double value : table) largest = std::max(largest, std::abs(value));
  const double error = factor_error(factors, table);
  constexpr double kTolerance = 1e-12;
  if (!(error <= kTolerance * largest)) {
    refuse(name,
           "the factors must give the table to 1e-12 of its largest entry, but miss it by " + show(error));
  }
}

// FNV-1a, 64 bits, over n and the entries as little-endian bytes.
std::string hash_of(int n, const std::vector<double>& table) {
  uint64_t hash = 0xcbf29ce484222325u;
  auto eat = [&hash](uint64_t word) {
    for (int byte = 0; byte < 8; ++byte) {
      hash ^= word >> (8 * byte) & 0xff;
      hash *= 0x100000001b3u;
    }
  };
  eat(static_cast<uint64_t>(n));
  for (double value : table) eat(std::bit_cast<uint64_t>(value == 0 ? 0.0 : value));  // -0 is 0
  std::string digits(16, '0');
  for (int d = 15; d >= 0; --d, hash >>= 4) digits[d] = "0123456789abcdef"[hash & 0xf];
  return digits;
}

}  // namespace

Algebra::Algebra(std::string name, int n, std::vector<double> table, std::optional<Factors> factors,
                 std::vector<double> conjugation)
    : name_(std::move(name)), n_(n), table_(std::move(table)), conjugation_(std::move(conjugation)) {
  check_table(name_, n_, table_);
  if (conjugation_.empty()) {
    conjugation_.assign(n_, -1);
    conjugation_[0] = 1;
  }
  const auto is_sign = [](double value) { return value == 1 || value == -1; };
  if (conjugation_.size() != static_cast<size_t>(n_) ||
      !std::all_of(conjugation_.begin(), conjugation_.end(), is_sign)) {
    refuse(name_, "the conjugation must be n = " + std::to_string(n_) + " signs, each 1 or -1");
  }
  if (factors) check_factors(name_, *factors, table_);
  Factors trivial = trivial_factors(n_, table_);
  has_fast_factors_ = factors && factors->rank < trivial.rank;
  factors_ = factors ? std::move(*factors) : std::move(trivial);
  properties_ = compute_properties(n_, table_);
  hash_ = hash_of(n_, table_);
}

double factor_error(const Factors& factors, const std::vector<double>& table) {
  const size_t n = factors.n > 0 ? factors.n : 0, rank = factors.rank > 0 ? factors.rank : 0;
  if (n == 0 || n > kMaxDimension || table.size() != n * n * n) {
    throw std::invalid_argument("factor_error: the table of factors with n = " + std::to_string(factors.n) +
                                " must have n^3 entries, got " + std::to_string(table.size()));
  }
  for (const auto* factor : {&factors.U, &factors.V, &factors.W}) {
    if (factor->size() != n * rank) {
      throw std::invalid_argument(
          "factor_error: U, V and W must each have n * rank = " + std::to_string(n * rank) +
          " entries for n = " + std::to_string(n) + " and rank = " + std::to_string(factors.rank) + ", got " +
          std::to_string(factor->size()));
    }
  }
  std::vector<double> difference = table;
  for (size_t r = 0; r < rank; ++r) {
    for (size_t i = 0; i < n; ++i) {
      const double u = factors.U[i * rank + r];
      if (u == 0) continue;
      for (size_t a = 0; a < n; ++a) {
        const double uw = u * factors.W[a * rank + r];
        if (uw == 0) continue;
        for (size_t b = 0; b < n; ++b) difference[(i * n + a) * n + b] -= uw * factors.V[b * rank + r];
      }
    }
  }
  double largest = 0;
  for (double value : difference) {
    if (std::isnan(value)) return value;
    largest = std::max(largest, std::abs(value));
  }
  return largest;
}

}  // namespace quatrain::algebra
