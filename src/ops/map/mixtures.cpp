#include "ops/map/mixtures.h"

#include <algorithm>
#include <array>
#include <map>

#include "ops/kept.h"
#include "ops/structure/structure.h"

namespace quatrain::ops {

using engine::Mixing;
using engine::Mixings;

Mixtures::Mixtures(int64_t n, Values table, int64_t rank, Values U, Values V, Values W)
    : n_(n), rank_(rank), table_(std::move(table)), U_(std::move(U)), V_(std::move(V)), W_(std::move(W)) {}

const Mixings& Mixtures::factors() const {
  std::call_once(factors_once_, [this] {
    TORCH_CHECK(rank_ > 0, "the way 'factored' needs factors");
    factors_.emplace(U_.data(), V_.data(), W_.data(), n_, rank_);
  });
  return *factors_;
}

const Mixtures::Values& Mixtures::table() const {
  std::call_once(table_once_, [this] {
    if (table_.empty()) table_ = structure::product_of(U_, V_, W_, n_, rank_);
  });
  return table_;
}

const Mixing& Mixtures::rows() const {
  std::call_once(rows_.once, [this] {
    const auto n = static_cast<size_t>(n_);
    Values rows(n * n * n);
    const double* from = table().data();
    for (size_t i = 0; i < n; ++i)
      for (size_t a = 0; a < n; ++a, from += n) std::copy_n(from, n, rows.data() + (a * n + i) * n);
    rows_.mixing = Mixing::from_rows(rows.data(), n_ * n_, n_);
  });
  return rows_.mixing;
}

const Mixing& Mixtures::blocks() const {
  std::call_once(blocks_.once, [this] {
    const auto n = static_cast<size_t>(n_);
    Values blocks(n * n * n);
    const double* value = table().data();
    for (size_t i = 0; i < n; ++i)
      for (size_t ab = 0; ab < n * n; ++ab) blocks[ab * n + i] = *value++;
    blocks_.mixing = Mixing::from_rows(blocks.data(), n_ * n_, n_);
  });
  return blocks_.mixing;
}

const Mixing& Mixtures::components() const {
  std::call_once(components_.once,
                 [this] { components_.mixing = Mixing::from_rows(table().data(), n_, n_ * n_); });
  return components_.mixing;
}

namespace {

using Made = std::shared_ptr<const Mixtures>;

Made of_fixed(const algebra::Algebra& algebra) {
  static std::mutex mutex;
  static auto* made = new std::map<const algebra::Algebra*, Made>;  // tensors may outlive static objects
  const std::lock_guard lock(mutex);  // of the look-up: the mixtures are made when they are asked for
  Made& entry = (*made)[&algebra];
  if (!entry) {
    const auto& f = algebra.factors();
    entry = std::make_shared<Mixtures>(algebra.n(), algebra.table(), f.rank, f.U, f.V, f.W);
  }
  return entry;
}

/// The sizes and values that a learned tensor and its factors had, and what was made of them. The values
/// alone do not tell: factors of (n, R) viewed as those of (R, n) have the same.
struct OfLearned {
  int64_t n = 0, rank = 0;
  std::array<std::vector<double>, 4> values;  // A, where it is not the product of its factors; U, V, W
  Made made;

  OfLearned() = default;
  explicit OfLearned(const Call& call) : n(call.A->size(1)), rank(call.rank()) {
    if (!call.factored()) values[0] = structure::values_of(*call.A);
    for (size_t i = 0; rank > 0 && i < 3; ++i) values[i + 1] = structure::values_of(factor(call, i));
    made = std::make_shared<Mixtures>(n, values[0], rank, values[1], values[2], values[3]);
  }
  bool is(const Call& call) const {
    if (!made || n != call.A->size(1) || rank != call.rank()) return false;
    if (call.factored() ? !values[0].empty() : !structure::has_values(*call.A, values[0])) return false;
    for (size_t i = 0; rank > 0 && i < 3; ++i)
      if (!structure::has_values(factor(call, i), values[i + 1])) return false;
    return true;
  }
  static at::Tensor factor(const Call& call, size_t i) { return call.factor(static_cast<int64_t>(i)); }
};

struct Kept {
  std::mutex mutex;
  OfLearned of;
};

}  // namespace

std::shared_ptr<const Mixtures> mixtures(const Call& call) {
  if (const algebra::Algebra* fixed = call.fixed()) return of_fixed(*fixed);
  if (!call.constant || !call.A->has_storage()) return OfLearned(call).made;
  // In eval mode A stays as it is: what was made of these very values is kept, until A is gone.
  const auto kept = kept::beside<Kept>(*call.A);
  const std::lock_guard lock(kept->mutex);
  if (!kept->of.is(call)) kept->of = OfLearned(call);
  return kept->of.made;
}

}  // namespace quatrain::ops
