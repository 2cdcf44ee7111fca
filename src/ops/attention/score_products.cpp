#include "ops/attention/score_products.h"

#include <vector>

namespace quatrain::ops {

namespace {

using engine::Mixing;

// Values of a component that a product of its own costs beside its multiplications: its scores are written,
// and mixed.
constexpr int64_t kProductValues = 12;
constexpr int64_t kMostProducts = 64;  // that a kernel transposes at once

}  // namespace

bool ScoreProducts::pay(const algebra::Algebra& algebra, int64_t m) {
  const int64_t n = algebra.n(), rank = algebra.factors().rank;
  return rank <= kMostProducts && rank * (m + kProductValues) < n * (n * m + kProductValues);
}

int64_t ScoreProducts::multiplications(const algebra::Algebra& algebra, int64_t n, int64_t m) {
  if (algebra.n() == 1) return n * m;  // one map of all components
  return pay(algebra, m) ? algebra.factors().rank * m : n * n * m;
}

Mixing map_mixing(const AttentionCall& call, double scale, bool into_maps) {
  const int n = call.algebra->n();
  std::vector<double> rows;
  for (int o = 0; o < (into_maps ? n * n : n); ++o)
    for (int i = 0; i < (into_maps ? n : n * n); ++i) {
      const int input = into_maps ? i : o, mixture = into_maps ? o : i;
      rows.push_back(call.table(input, mixture / n, mixture % n) * scale);
    }
  return into_maps ? Mixing::from_rows(rows.data(), int64_t{n} * n, n)
                   : Mixing::from_rows(rows.data(), n, int64_t{n} * n);
}

ScoreProducts::ScoreProducts(const AttentionCall& call, double scale, bool of_components)
    : mixed(of_components) {
  const algebra::Factors& f = call.algebra->factors();
  const int64_t n = f.n;
  if (!mixed) {
    count = parts = n;
    queries = map_mixing(call, scale, true), from_queries = map_mixing(call, scale, false);
    keys = from_keys = Mixing::copies(n);
    return;
  }
  count = f.rank, parts = 1;
  const bool swapped = call.options.order == ProductOrder::key_query;
  std::vector<double> of_queries = swapped ? f.V : f.U;
  const std::vector<double>& of_keys = swapped ? f.U : f.V;
  for (double& coefficient : of_queries) coefficient *= scale;
  queries = Mixing::into_products(of_queries.data(), n, count);
  from_queries = Mixing::from_products(of_queries.data(), n, count);
  keys = Mixing::into_products(of_keys.data(), n, count);
  from_keys = Mixing::from_products(of_keys.data(), n, count);
  scores = Mixing::from_products(f.W.data(), n, count);
  from_scores = Mixing::into_products(f.W.data(), n, count);
}

}  // namespace quatrain::ops
