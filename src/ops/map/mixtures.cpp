#include "ops/map/mixtures.h"

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
    TORCH_CHECK(rank_ > 0, "linear: the way 'factored' needs factors");
    factors_.emplace(U_.data(), V_.data(), W_.data(), n_, rank_);
  });
  return *factors_;
}

const Mixtures::OfTable& Mixtures::of_table() const {
  std::call_once(table_once_, [this] {
    const Values table = table_.empty() ? structure::product_of(U_, V_, W_, n_, rank_) : table_;
    const int64_t n = n_;
    Values rows(table.size()), blocks(table.size());
    for (int64_t i = 0; i < n; ++i)
      for (int64_t a = 0; a < n; ++a)
        for (int64_t b = 0; b < n; ++b) {
          const double value = table[static_cast<size_t>((i * n + a) * n + b)];
          rows[static_cast<size_t>((a * n + i) * n + b)] = value;
          blocks[static_cast<size_t>((a * n + b) * n + i)] = value;
        }
    of_table_ = {Mixing::from_rows(rows.data(), n * n, n), Mixing::from_rows(blocks.data(), n * n, n),
                 Mixing::from_rows(table.data(), n, n * n)};
  });
  return of_table_;
}

const Mixing& Mixtures::rows() const {
  return of_table().rows;
}
const Mixing& Mixtures::blocks() const {
  return of_table().blocks;
}
const Mixing& Mixtures::components() const {
  return of_table().components;
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
  std::mutex mutex;
  int64_t n = 0, rank = 0;
  std::array<std::vector<double>, 4> values;
  Made made;
};

}  // namespace

std::shared_ptr<const Mixtures> mixtures(const Call& call) {
  if (const algebra::Algebra* fixed = call.fixed()) return of_fixed(*fixed);
  std::array<std::vector<double>, 4> values;  // A, where it is not the product of its factors; U, V, W
  const int64_t n = call.A->size(1), rank = call.rank();
  if (!call.factored()) values[0] = structure::values_of(*call.A);
  for (size_t i = 0; rank > 0 && i < 3; ++i)
    values[i + 1] = structure::values_of(call.factor(static_cast<int64_t>(i)));
  const auto make = [n, rank](const auto& v) {
    return std::make_shared<Mixtures>(n, v[0], rank, v[1], v[2], v[3]);
  };
  if (!call.constant || !call.A->has_storage()) return make(values);
  // In eval mode A stays as it is: what was made of these very values is kept, until A is gone.
  const auto kept = kept::beside<OfLearned>(*call.A);
  const std::lock_guard lock(kept->mutex);
  if (!kept->made || kept->n != n || kept->rank != rank || kept->values != values) {
    kept->made = make(values);
    kept->n = n, kept->rank = rank;
    kept->values = std::move(values);
  }
  return kept->made;
}

}  // namespace quatrain::ops
