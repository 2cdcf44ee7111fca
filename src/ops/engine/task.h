#pragma once

#include "ops/engine/blocking.h"

/// What one thread does of a pass; task.cpp says how.
namespace quatrain::ops::engine {

/// The rectangle of C that a task computes.
struct Task {
  int64_t row, row_end, col, col_end;
};

/// Computes it. `sums`: n x R of the task's own, where the pass has a probe.
void run_task(const Pass& pass, const Blocking& blocking, const Task& task, float* sums);

/// sums (n x R) += the inner products of the n blocks of a probe at (row, col) with R products.
void add_dots(const Blocks& probe, int64_t n, int64_t row, int64_t col, const float* const* products,
              int64_t rank, int64_t product_row, int64_t rows, int64_t cols, float* sums);

}  // namespace quatrain::ops::engine
