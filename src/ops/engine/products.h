#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "quatrain/api.h"

/// The small products of float32 that the engine consists of.
namespace quatrain::ops::engine {

/// C (rows x cols) = A (rows x depth) B (depth x cols), row-major, rows a_row, b_row and c_row elements
/// apart; ATen's product. From AVX2 on each value of C is one chain of sums over the depth.
void small_product(int64_t rows, int64_t cols, int64_t depth, const float* a, int64_t a_row, const float* b,
                   int64_t b_row, float* c, int64_t c_row);

/// The same of several pairs of matrices, whose products are added in their order: C = sum_i A_i B_i, zeros
/// where there is none. By a product of our own (kernels/cpu/products.h), where it has the bits of ATen's,
/// which fetches `next` meanwhile. It costs no call of oneDNN's, which would count in thousands of small
/// products.
void linked_product(int64_t rows, int64_t cols, int64_t depth, const kernels::cpu::Links& links,
                    int64_t a_row, int64_t b_row, float* c, int64_t c_row, const kernels::cpu::Fetched& next);

/// `count` such products of one shape, each to its own C.
void linked_products(int64_t rows, int64_t cols, int64_t depth, const kernels::cpu::Links* of, int64_t count,
                     int64_t a_row, int64_t b_row, float* const* c, int64_t c_row,
                     const kernels::cpu::Fetched& next);

/// True where `linked_product` takes our own product, which has the bits of ATen's.
QUATRAIN_API bool takes_own_products();

/// True where so many mixed weights stay in the second level cache beside a panel's rows. Then products fetch
/// the rows that come next, else the weights.
constexpr bool stays_in_cache(int64_t weights) {
  constexpr int64_t kBytes = 1 << 19;
  return weights * 4 <= kBytes;
}

/// Values in [0, 1), always the same ones, for a look at the bits that a product gives.
std::vector<float> probe_values(int64_t count);

}  // namespace quatrain::ops::engine
