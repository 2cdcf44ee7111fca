#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "ops/engine/mixing.h"
#include "quatrain/api.h"

/// The factored way on a CPU: one bilinear pass that serves every algebra and all three passes of a layer.
///
///   C_c = sum_r out[c, r] (sum_j left[j, r] A_j) (sum_i right[i, r] B_i) + bias_c      c, i, j < n;  r < R
///
/// with A_j of M x K, B_i of K x N, C_c of M x N. The structure tensor's factors U (weights), V (inputs),
/// W (outputs) and the layer's tensors play these roles:
///
///   pass      M      N     K       A, left     B, right    C, out
///   forward   rows   k/n   d/n     x, V        S^T, U      y, W
///   dx        rows   d/n   k/n     dy, W       S, U        dx, V
///   dS        k/n    d/n   rows    dy^T, W     x, V        dS, U
namespace quatrain::ops::engine {

constexpr int64_t kMaxComponents = 64;  // algebra's largest n
// Of a block. Its right operand stays in the first two levels of the cache. oneDNN's products take as many
// rows at a time as fit beside the columns, and the first of them waits for weights that come from memory:
// with 32 columns that was a third of 32 rows, with 64 it is a sixth.
constexpr int64_t kColumns = 64;
constexpr int64_t kPanelRows = 256;  // at most

/// n matrices inside one tensor, float32 or bfloat16.
struct Blocks {
  void* data = nullptr;
  int64_t component = 0;  ///< elements from one matrix to the next
  int64_t row = 0;        ///< elements from one stored row to the next; columns have stride 1
  bool transposed = false;
  at::ScalarType dtype = at::kFloat;
};

/// n pointers to the place (row, col) of each matrix.
template <class T>
void pointers(const Blocks& blocks, int64_t n, int64_t row, int64_t col, T** to) {
  for (int64_t c = 0; c < n; ++c)
    to[c] = static_cast<T*>(blocks.data) + c * blocks.component +
            (blocks.transposed ? col * blocks.row + row : row * blocks.row + col);
}

/// Matrices side by side, as if they were one: n of so many columns. Taps of a convolution, inputs beside
/// states.
struct Piece {
  Blocks blocks;
  int64_t width = 0;  ///< columns
};
using Pieces = std::span<const Piece>;

/// A tensor's values, or null where it is undefined.
inline const float* values_or_null(const at::Tensor& t) {
  return t.defined() ? t.const_data_ptr<float>() : nullptr;
}

/// What becomes of a result y once it is whole, value by value: activation(scale y + bias + residual). Parts
/// that are null are left out; scale and bias hold n N values, one a column of each component.
struct Epilogue {
  const float* scale = nullptr;
  const float* bias = nullptr;
  Blocks residual;  ///< float32, as C lies; without data there is none
  kernels::cpu::Activation activation = kernels::cpu::Activation::identity;

  /// True where there is nothing but a bias, which sums take on their way.
  bool only_bias() const {
    return !scale && !residual.data && activation == kernels::cpu::Activation::identity;
  }
};

/// Some of a result's columns, the same ones of each component. Each value has the bits that it has among all
/// of them.
struct Columns {
  int64_t begin = 0;  ///< a multiple of kColumns
  int64_t end = std::numeric_limits<int64_t>::max();
  int64_t end_of(int64_t all) const { return std::min(end, all); }
};

struct Pass {
  int64_t M = 0, N = 0, K = 0;
  int64_t n = 0, rank = 0;
  Pieces A;  ///< of K columns together; a transposed one comes alone
  const Mixing* left = nullptr;
  Pieces B;  ///< of N columns together; a transposed one comes alone
  const Mixing* right = nullptr;
  const void* packed = nullptr;  ///< what `pack` made of B, used in its place
  bool packed_unmixed = false;   ///< `packed` holds B's n matrices, mixed as they are multiplied; float32
  at::ScalarType multiplied_in =
      at::kFloat;           ///< what the mixtures of A and B are rounded to: float32, bfloat16
  Columns columns;          ///< those of C that are computed
  Blocks C;                 ///< without data nothing is written
  bool accumulate = false;  ///< C's values are added to
  const Mixing* out = nullptr;
  Epilogue epilogue;
  Blocks probe;               ///< n matrices of M x N, whose inner products with the R products are wanted
  float* sums = nullptr;      ///< n x R, added to
  float* products = nullptr;  ///< where the R products are to be kept, each M x N, one after the other
};

/// True where ATen multiplies bfloat16 in packed form of its own, much faster than float32 (AMX).
bool prefers_halves();
/// True where a pass may multiply in bfloat16 at all, however fast.
bool multiplies_halves();
/// True where a row of a float32 pass has the same bits whatever the number of rows: where small products add
/// in one order. Those of oneDNN do, from AVX2 on, and our own are taken beside them where they do alike;
/// elsewhere they are MKL's, which takes other kernels for a few rows.
bool rows_stand_alone();

/// True where each value of C is stored once, as it is. Else C holds sums on the way, and must be float32.
bool one_store(const Pass& pass);

void run(const Pass& pass);

/// Applies an epilogue to rows x cols of C at (row, col), in place; N: columns of each component.
void finish_block(const kernels::cpu::Table& kernels, const Epilogue& epilogue, int64_t n, int64_t N,
                  int64_t row, int64_t col, int64_t rows, int64_t cols, const Blocks& C);

/// The same of all `rows` of C, shared among the threads.
void finish_rows(const Epilogue& epilogue, int64_t n, int64_t N, int64_t rows, int64_t col, int64_t cols,
                 const Blocks& C);

/// The same of `cols` columns of one component, from the result's column `col` on: `values` and what is
/// added, whose rows are `row` and `residual_row` numbers apart; no residual: null.
void finish_columns(const kernels::cpu::Table& kernels, const Epilogue& epilogue, int64_t col, int64_t rows,
                    int64_t cols, float* values, int64_t row, const float* residual, int64_t residual_row);

/// The inner products that a pass with a probe gives, from products that an earlier one kept: sums (n x R,
/// added to) of the n matrices of `probe` with the R kept ones, all M x N.
void dots(const Blocks& probe, int64_t n, const float* products, int64_t rank, int64_t M, int64_t N,
          float* sums);

/// How right operands of float32 lie, so that products read them one value after the other. With AVX-512
/// oneDNN's pass over 64 columns at once. With the 16 registers of AVX2 they do not, and weights that come
/// from the third level cache in rows of 64 columns take up to half as long again as in narrower ones.
struct Layout {
  int64_t columns;      ///< of a block that lie together
  int64_t few_columns;  ///< the same where a product has a handful of rows; divides kColumns
  /// The same for one row of up to four components (mixed_rows.h): tiles of so few rows may be wider.
  int64_t row_columns;
  int64_t few_rows;  ///< for which weights that are packed unmixed are mixed but once; 0: nothing is
  int64_t tiles;  ///< of a panel, of all types: fewer make deeper blocks, whose products are mixed less often
};
/// This processor's, or that of the kernels which are forced when it is asked for first.
QUATRAIN_API const Layout& layout();

/// Bytes of the packed right operand, and the packing: right mixtures of B in the order in which `run` reads
/// them.
int64_t packed_bytes(const Pass& pass);
void pack(const Pass& pass, void* to);

}  // namespace quatrain::ops::engine
