#pragma once

#include <ATen/native/CPUBlas.h>

#include <algorithm>

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
    panel = std::clamp<int64_t>(kLeftBytes / (line * depth) / tile * tile, tile, 256);
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

// Rows of the next product. From four rows on one takes as long as it has rows; ATen makes a function for
// each number of them in a tenth of a millisecond, so above 16 they are filled up to a multiple of four.
inline int64_t tile_height(int64_t rows, int64_t largest) {
  constexpr int64_t kExact = 16, kStep = 4;
  if (rows >= largest) return largest;
  return rows <= kExact ? rows : (rows + kStep - 1) / kStep * kStep;
}

/// `next`: the block that is multiplied next where they come packed, else null.
inline void multiply_block(int64_t rows, int64_t cols, int64_t depth, const float* a, int64_t a_row,
                           const float* b, const float* next, float* c) {
  for (int64_t done = 0; done < cols; done += layout().columns) {
    const int64_t together = std::min(layout().columns, cols - done);
    const float* const part = b + done * depth;
    const float* const after = next && done + together < cols ? part + together * depth : next;
    small_product(rows, together, depth, a, a_row, part, together, after, c + done, cols);
  }
}

/// `depth` is even. Once a thread has called this it must release what the call keeps of the processor
/// (Release): a product of ATen's own would meet it.
inline void multiply_block(int64_t rows, int64_t cols, int64_t depth, const bf16* a, int64_t a_row,
                           const bf16* b, const bf16* /*next*/, float* c) {
  const auto of = [](const bf16* p) { return reinterpret_cast<const at::BFloat16*>(p); };
  at::native::cpublas::brgemm(rows, cols, depth, a_row, cols, cols, false, of(a), of(b), c, true);
}

}  // namespace quatrain::ops::engine
