#include "ops/engine/products.h"

#include <ATen/native/CPUBlas.h>

#include "kernels/cpu/kernels.h"
#include "ops/engine/engine.h"

namespace quatrain::ops::engine {

void small_product(int64_t rows, int64_t cols, int64_t depth, const float* a, int64_t a_row, const float* b,
                   int64_t b_row, bool prepared, float* c, int64_t c_row) {
  // One to three rows wait for memory either way, and oneDNN's read it in longer stretches.
  constexpr int64_t kFewest = 4;
  if (prepared && rows >= kFewest && rows <= layout().own_rows)
    kernels::cpu::active().product(a, a_row, rows, b, b_row, depth, cols, c, c_row);
  else
    at::native::cpublas::brgemm(rows, cols, depth, a_row, b_row, c_row, false, a, b, c);
}

}  // namespace quatrain::ops::engine
