#include "ops/engine/mixing.h"

#include <atomic>
#include <cmath>
#include <utility>

namespace quatrain::ops::engine {

namespace {

/// Column r of a factor with column s.
double inner(const double* factor, int64_t n, int64_t rank, int64_t r, int64_t s) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += factor[i * rank + r] * factor[i * rank + s];
  return sum;
}

/// True where a mixture by column r is its input times a power of two, or nothing.
bool is_exact(const double* factor, int64_t n, int64_t rank, int64_t r) {
  int64_t terms = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double c = std::abs(factor[i * rank + r]);
    if (c == 0) continue;
    if (std::exp2(std::round(std::log2(c))) != c || ++terms > 1) return false;
  }
  return true;
}

}  // namespace

Mixing Mixing::from_rows(const double* rows, int64_t outputs, int64_t inputs) {
  Mixing mixing;
  // A learned tensor's are made anew in every step.
  mixing.begin_.reserve(static_cast<size_t>(outputs + 1));
  mixing.source_.reserve(static_cast<size_t>(outputs * inputs));
  mixing.coefficient_.reserve(static_cast<size_t>(outputs * inputs));
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t i = 0; i < inputs; ++i)
      if (const double c = rows[o * inputs + i]; c != 0)
        mixing.add(static_cast<int32_t>(i), static_cast<float>(c));
    mixing.end_mixture();
  }
  mixing.group();
  return mixing;
}

Mixing Mixing::copies(int64_t count) {
  Mixing mixing;
  for (int64_t i = 0; i < count; ++i) {
    mixing.add(static_cast<int32_t>(i), 1);
    mixing.end_mixture();
  }
  mixing.group();
  return mixing;
}

Mixing Mixing::some(std::span<const int32_t> outputs, bool alone) const {
  Mixing found;
  const kernels::cpu::Mix all = ungrouped();
  for (const int32_t o : outputs) {
    for (int32_t e = all.begin[o]; e < all.begin[o + 1]; ++e) found.add(all.source[e], all.coefficient[e]);
    found.end_mixture();
  }
  found.group(!alone);
  return found;
}

Mixing Mixing::from_products(const double* factor, int64_t n, int64_t rank) {
  return from_rows(factor, n, rank);
}

Mixing Mixing::into_products(const double* factor, int64_t n, int64_t rank) {
  std::vector<double> columns(static_cast<size_t>(n * rank));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t r = 0; r < rank; ++r) columns[static_cast<size_t>(r * n + j)] = factor[j * rank + r];
  Mixing mixing = from_rows(columns.data(), rank, n);
  std::vector<int32_t> made;
  for (int32_t r = 0; r < rank; ++r)
    if (mixing.only_input(r) < 0) made.push_back(r);
  if (static_cast<int64_t>(made.size()) < rank) {
    Mixing others = mixing.some(made, /*alone=*/false);
    others.groups_ = mixing.groups_.some(made);  // the bits of all of them
    mixing.made_ = std::make_shared<const Mixing>(std::move(others));
  }
  return mixing;
}

int32_t Mixing::only_input(int64_t mixture) const {
  const auto o = static_cast<size_t>(mixture);
  const auto e = static_cast<size_t>(begin_[o]);
  return begin_[o + 1] == begin_[o] + 1 && coefficient_[e] == 1 ? source_[e] : -1;
}

kernels::cpu::Mix copies_of(int64_t count) {
  // A shorter one is the beginning of a longer one. Each thread has its own, which only grows.
  static thread_local Mixing copies;
  if (copies.view().outputs < count) copies = Mixing::copies(count);
  kernels::cpu::Mix first = copies.view();
  first.outputs = first.groups = static_cast<int32_t>(count);
  return first;
}

double rounding_growth(const double* out, const double* left, const double* right, int64_t n, int64_t rank) {
  double noise = 0, norm = 0;
  const auto both = [&](int64_t r, int64_t s) {
    return inner(out, n, rank, r, s) * inner(left, n, rank, r, s) * inner(right, n, rank, r, s);
  };
  for (int64_t r = 0; r < rank; ++r)
    noise += both(r, r) * (!is_exact(left, n, rank, r) + !is_exact(right, n, rank, r));
  // |T|^2 is the sum over all pairs of columns; many columns are cheaper summed into T.
  if (rank <= n * n) {
    for (int64_t r = 0; r < rank; ++r)
      for (int64_t s = 0; s < rank; ++s) norm += both(r, s);
  } else {
    std::vector<double> pairs(static_cast<size_t>(rank));
    for (int64_t c = 0; c < n; ++c)
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t r = 0; r < rank; ++r)
          pairs[static_cast<size_t>(r)] = out[c * rank + r] * left[j * rank + r];
        for (int64_t i = 0; i < n; ++i) {
          double cell = 0;
          for (int64_t r = 0; r < rank; ++r) cell += pairs[static_cast<size_t>(r)] * right[i * rank + r];
          norm += cell * cell;
        }
      }
  }
  return norm > 0 ? std::sqrt(1 + noise / norm) : 1;
}

namespace {

uint64_t next_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

std::vector<double> copied(const double* factor, int64_t n, int64_t rank) {
  return {factor, factor + n * rank};
}

}  // namespace

Mixings::Mixings(const double* U, const double* V, const double* W, int64_t n_, int64_t rank_)
    : n(n_),
      rank(rank_),
      number(next_number()),
      U_in(Mixing::into_products(U, n, rank)),
      V_in(Mixing::into_products(V, n, rank)),
      W_in(Mixing::into_products(W, n, rank)),
      U_out(Mixing::from_products(U, n, rank)),
      V_out(Mixing::from_products(V, n, rank)),
      W_out(Mixing::from_products(W, n, rank)),
      U_(copied(U, n, rank)),
      V_(copied(V, n, rank)),
      W_(copied(W, n, rank)) {}

const Mixings::Growth& Mixings::growth() const {
  std::call_once(once_, [this] {
    const double *U = U_.data(), *V = V_.data(), *W = W_.data();
    growth_ = {rounding_growth(W, V, U, n, rank), rounding_growth(V, W, U, n, rank),
               rounding_growth(U, W, V, n, rank)};
  });
  return growth_;
}

}  // namespace quatrain::ops::engine
