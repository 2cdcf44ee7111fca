#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/kernels.h"
#include "quatrain/api.h"

/// The small products of float32 that the engine consists of.
namespace quatrain::ops::engine {

/// C (rows x cols) = A (rows x depth) B (depth x cols), row-major, rows a_row, b_row and c_row elements
/// apart. From AVX2 on each value of C is one chain of sums over the depth. Where B is a part of weights that
/// are kept between calls, `next` is the part of them that is multiplied next, else null. Kept weights are
/// multiplied by a product of our own (kernels/cpu/products.h), which fetches as many values from there
/// meanwhile.
void small_product(int64_t rows, int64_t cols, int64_t depth, const float* a, int64_t a_row, const float* b,
                   int64_t b_row, const float* next, float* c, int64_t c_row);

/// The same of several pairs of matrices, whose products are added in their order: C = sum_i A_i B_i, zeros
/// where there is none. B_i are kept weights; `next` is fetched meanwhile. A convolution makes thousands of
/// such products in a pass, so that a call of oneDNN's would count.
void linked_product(int64_t rows, int64_t cols, int64_t depth, const kernels::cpu::Links& links,
                    int64_t a_row, int64_t b_row, float* c, int64_t c_row, const kernels::cpu::Fetched& next);

/// True where kept weights are multiplied by our own product, which has the bits of ATen's.
QUATRAIN_API bool takes_own_products();

/// Values in [0, 1), always the same ones, for a look at the bits that a product gives.
std::vector<float> probe_values(int64_t count);

}  // namespace quatrain::ops::engine
