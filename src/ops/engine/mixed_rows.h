#pragma once

#include "ops/engine/engine.h"

namespace quatrain::ops::engine {

/// The mixed way for a handful of rows: y_a = sum_i S_i z_ai + bias_a with z_ai = sum_j A[i, a, j] x_j. Each
/// weight is read once, as it lies in S, for all n products and rows.
struct Stream {
  int64_t rows = 0, n = 0, m = 0, p = 0;
  Pieces x;                        ///< n matrices rows x p
  Blocks S;                        ///< n matrices m x p
  float* y = nullptr;              ///< rows x (n m), contiguous
  Columns columns;                 ///< those of y that are computed: rows of S
  const Mixing* inputs = nullptr;  ///< n -> n^2: mixture a n + i holds A[i, a, :]
  const float* bias = nullptr;     ///< n m values
  const float* packed = nullptr;   ///< what `pack` made of S, read in its place
  int64_t together = 0;            ///< columns that lie together in it
};

/// The best such columns for so many mixtures of inputs at a time.
int64_t columns_together(int64_t vectors);

/// S (float32) in the order of a product with x's mixtures, whose sums need not be gathered from lanes: n m p
/// values, for maps that are applied so often that a copy is worth it.
void pack(const Stream& stream, float* to);

void run(const Stream& stream);

}  // namespace quatrain::ops::engine
