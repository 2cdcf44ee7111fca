#pragma once

#include <cstdint>

#include "ops/attention/attention.h"
#include "ops/engine/mixing.h"
#include "quatrain/api.h"

namespace quatrain::ops {

/// How the scores of all n maps are made of products of queries with keys, (L, depth) times (depth, S). A
/// score is a component of the algebra's product of a query with a key, so either
///
///   R products of single components:  scores_c = sum_r W[c, r] (sum_i U[i, r] Q_i) . (sum_j V[j, r] K_j)
///   a product a map, of n components: scores_c = sum_j (sum_i A[i, c, j] Q_i) . K_j
///
/// The first makes R / n^2 of the multiplications and mixes scores; it pays for components of many values.
struct QUATRAIN_API ScoreProducts {
  int64_t count;                ///< products: R or n
  int64_t parts;                ///< components that are side by side in a product's depth: 1 or n
  bool mixed;                   ///< the scores are mixtures of products, and each product has keys of its own
  engine::Mixing queries;       ///< n -> count * parts, with the scale
  engine::Mixing keys;          ///< n -> parts of all keys
  engine::Mixing scores;        ///< count -> n, where they are mixed
  engine::Mixing from_queries;  ///< the transposes, of the way back
  engine::Mixing from_keys, from_scores;

  /// Of single components, or a product a map.
  ScoreProducts(const AttentionCall& call, double scale, bool of_components);
  /// Whether products of single components are cheaper, of m values each.
  static bool pay(const algebra::Algebra& algebra, int64_t m);
  /// Multiplications that the scores of one query with one key take, of n components of m values.
  static int64_t multiplications(const algebra::Algebra& algebra, int64_t n, int64_t m);

  /// Parts of all keys: those that differ.
  int64_t key_parts() const { return mixed ? count : parts; }
  /// The product's keys, of so many values for each of them.
  int64_t keys_of(int64_t product, int64_t values) const { return mixed ? product * values : 0; }
};

/// Mixture c n + j of the n inputs holds A[:, c, j] times the scale: into maps; or its transpose.
engine::Mixing map_mixing(const AttentionCall& call, double scale, bool into_maps);

}  // namespace quatrain::ops
