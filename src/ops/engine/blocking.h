#pragma once

#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <optional>

#include "ops/engine/engine.h"
#include "ops/engine/operands.h"
#include "ops/engine/products.h"

/// The blocks of a pass, and one product of them.
namespace quatrain::ops::engine {

using kernels::cpu::bf16;

constexpr int64_t kTile = 64;               // rows of one product
constexpr int64_t kLeftBytes = 1 << 19;     // of a panel's left mixtures: most of a small second level cache
constexpr int64_t kRightBytes = 1 << 21;    // of a strip's right mixtures, read again for every panel
constexpr int64_t kSmallRight = 1 << 19;    // the same where there is one panel: they are used at once
constexpr int64_t kShortRow = 256;          // values of a row whose parts are read as fast where they lie
constexpr int64_t kProductBytes = 1 << 18;  // of a tile's products; twice as many rather than few rows

/// Calls work(T()) with the type in which a pass multiplies.
template <class Work>
auto in_type_of(const Pass& p, const Work& work) {
  return p.multiplied_in == at::kFloat ? work(float{}) : work(bf16{});
}

/// Sizes of blocks: functions of a layer's sizes, its algebra and the processor alone, so that what is packed
/// once fits every batch.
struct Blocking {
  int64_t depth;  // of a block of K
  int64_t panel;  // rows
  int64_t tile;   // rows

  explicit Blocking(const Pass& p) {
    const int64_t size = at::elementSize(p.multiplied_in), line = p.rank * size;
    tile = kTile;
    const int64_t products = std::min(kColumns, p.N) * p.rank * 4;
    while (tile > 8 && tile * products > (tile > 16 ? 1 : 2) * kProductBytes) tile /= 2;
    const int64_t step = kLine / size;
    const int64_t of_right = kRightBytes / (line * kColumns) / step * step;
    depth = std::clamp<int64_t>(std::min(kLeftBytes / (line * layout().tiles * tile), of_right), 64, 320);
    // Equal blocks, not full ones and a rest.
    const int64_t blocks = (p.K + depth - 1) / depth;
    depth = std::min(p.K, ((p.K + blocks - 1) / blocks + step - 1) / step * step);
    panel = std::clamp<int64_t>(kLeftBytes / (line * depth) / tile * tile, tile, kPanelRows);
  }
};

/// Matrices and columns of a right block that comes packed. Unmixed ones meet a handful of rows.
inline int64_t packed_matrices(const Pass& p) {
  return p.packed_unmixed ? p.n : p.rank;
}
inline int64_t block_columns(const Pass& p) {
  return p.packed_unmixed ? layout().few_columns : kColumns;
}

/// Where a right block starts in the packed order: blocks of columns, in them blocks of K.
template <class T>
int64_t packed_offset(const Pass& p, int64_t col, int64_t k0) {
  return packed_matrices(p) *
         (stored_depth<T>(p.K) * col + k0 * stored_columns<T>(std::min(block_columns(p), p.N - col)));
}

/// True where products fetch the rows that come next: of several panels or, in the gradient of the weights,
/// whose left operand is transposed, of several parts of the sum, beside mixed weights that stay in the
/// cache.
inline bool fetches_rows(const Pass& p, int64_t panels, int64_t depth) {
  const bool transposed = p.A[0].blocks.transposed;
  return (transposed ? depth < p.K : panels > 1) && stays_in_cache(p.rank * p.N * (transposed ? p.M : p.K));
}

/// True where inputs that need no mixing may be multiplied where they lie.
inline bool reads_in_place(const Pass& p) {
  const Blocks& inputs = p.A[0].blocks;
  return !p.packed_unmixed && p.A.size() == 1 && !inputs.transposed && inputs.dtype == at::kFloat &&
         inputs.row <= kShortRow;
}

// Rows of the next product. From four rows on one takes as long as it has rows; ATen makes a function for
// each number of them in a tenth of a millisecond, so above 16 they are filled up to a multiple of four.
inline int64_t tile_height(int64_t rows, int64_t largest) {
  constexpr int64_t kExact = 16, kStep = 4;
  if (rows >= largest) return largest;
  return rows <= kExact ? rows : (rows + kStep - 1) / kStep * kStep;
}

/// By `linked_product`, which fetches `next` meanwhile; without, by ATen's product.
inline void multiply_block(int64_t rows, int64_t cols, int64_t depth, const float* a, int64_t a_row,
                           const float* b, const std::optional<kernels::cpu::Fetched>& next, float* c) {
  const int64_t parts = (cols + layout().columns - 1) / layout().columns;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t done = part * layout().columns, together = std::min(layout().columns, cols - done);
    const float* const right = b + done * depth;
    if (!next) {
      small_product(rows, together, depth, a, a_row, right, together, c + done, cols);
      continue;
    }
    const int64_t share = next->count / parts;
    const float* const from = next->from ? next->from + part * share : nullptr;
    linked_product(rows, together, depth, {&a, &right, 1}, a_row, together, c + done, cols, {from, share});
  }
}

/// `depth` is even. Once a thread has called this it must release what the call keeps of the processor
/// (Release): a product of ATen's own would meet it.
inline void multiply_block(int64_t rows, int64_t cols, int64_t depth, const bf16* a, int64_t a_row,
                           const bf16* b, const std::optional<kernels::cpu::Fetched>& /*next*/, float* c) {
  const auto of = [](const bf16* p) { return reinterpret_cast<const at::BFloat16*>(p); };
  at::native::cpublas::brgemm(rows, cols, depth, a_row, cols, cols, false, of(a), of(b), c, true);
}

}  // namespace quatrain::ops::engine
