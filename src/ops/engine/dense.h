#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "quatrain/api.h"

/// Dense products, of H and of real layers: by ATen's library, or by the engine where that is slow, or with a
/// matrix that was packed before. MKL copies the right operand of each product into blocks that its kernels
/// read; of a constant weight that is done once. Where ATen was built with another library nothing is packed.
namespace quatrain::ops::engine {

/// A matrix in memory, columns of stride 1, or the transposed of such a one.
struct Matrix {
  const float* data = nullptr;
  int64_t row = 0;  ///< values from one stored row to the next
  bool transposed = false;
};

/// Of a product with fewer rows the engine's copies of operands cost more than it gains.
constexpr int64_t kFewRows = 16;

/// c (+)= a b + bias, of M x K and K x N; rows of c are c_row values apart. The bias has N values, or is
/// null.
QUATRAIN_API void multiply(int64_t M, int64_t N, int64_t K, const Matrix& a, const Matrix& b,
                           const float* bias, bool accumulate, float* c, int64_t c_row);
/// The same as a pass of the engine, whatever ATen's products are.
QUATRAIN_API void multiply_in_engine(int64_t M, int64_t N, int64_t K, const Matrix& a, const Matrix& b,
                                     const float* bias, bool accumulate, float* c, int64_t c_row);

/// True where ATen's float32 products are MKL's and the processor has AVX2 or more but is not Intel's: MKL
/// takes AVX2 at most there, and with 4 to 32 rows the engine is up to twice as fast even with AVX2.
bool dense_is_slow();

/// True where a product of so many rows with H (out, in) is faster with H packed: from 2 rows, below which a
/// product reads H as it lies, to 256, where the copy costs little beside the product.
bool packs_dense(int64_t rows, int64_t out, int64_t in);

/// H (out, in) float32, contiguous, in MKL's own order. Of its bytes (kByte) some 8 MB are never touched.
at::Tensor pack_dense(const at::Tensor& H);

/// y (+)= x H^T + bias, x (rows, in) and y (rows, out) with rows x_row and y_row values apart.
void multiply_packed(int64_t rows, int64_t out, int64_t in, const float* x, int64_t x_row,
                     const at::Tensor& packed, const float* bias, bool accumulate, float* y, int64_t y_row);

}  // namespace quatrain::ops::engine
