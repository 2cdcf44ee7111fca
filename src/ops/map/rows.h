#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "ops/engine/engine.h"
#include "ops/engine/operands.h"

/// Rows of n components in a BilinearMap's hands: as they lie, or put side by side.
namespace quatrain::ops {

using engine::Blocks;
using engine::Pieces;

/// Memories of a thread for what cannot be made in its place. They grow; what a call needed by way of
/// exception is given back when many have needed less.
enum class Spare { inputs, gradients, result };
template <Spare which>
float* spare(int64_t count) {
  constexpr int64_t kKept = 1 << 23;  // values
  constexpr int kMany = 100;          // calls
  struct Memory {
    std::unique_ptr<float[]> values;
    int64_t size = 0;
    int needed_less = 0;
  };
  static thread_local Memory memory;
  const bool less = memory.size > kKept && count <= memory.size / 2;
  memory.needed_less = less ? memory.needed_less + 1 : 0;
  if (count > memory.size || memory.needed_less == kMany) {
    memory.size = 0;  // should there be no memory
    memory.values.reset();
    memory.values = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(count));
    memory.size = count;
    memory.needed_less = 0;
  }
  return memory.values.get();
}

/// True where n components of `width` values lie side by side in float32 rows.
inline bool is_plain(const Blocks& blocks, int64_t width) {
  return blocks.dtype == at::kFloat && blocks.component == width && !blocks.transposed;
}

/// Copies columns of rows of n components, or adds them to what is there.
inline void move(const Blocks& from, const Blocks& to, int64_t n, int64_t rows, int64_t first,
                 int64_t columns, bool accumulate) {
  const auto& k = kernels::cpu::active();
  const kernels::cpu::Mix copies = engine::copies_of(n);
  const auto how = accumulate ? kernels::cpu::Store::add : kernels::cpu::Store::set;
  const auto run = [&](const auto combine, const auto** in, auto** out) {
    pointers(from, n, 0, first, in);
    pointers(to, n, 0, first, out);
    combine(copies, in, from.row, out, to.row, rows, columns, nullptr, how);
  };
  const float* floats[engine::kMaxComponents];
  const kernels::cpu::bf16* halves[engine::kMaxComponents];
  float* to_floats[engine::kMaxComponents];
  kernels::cpu::bf16* to_halves[engine::kMaxComponents];
  if (from.dtype == at::kFloat)
    to.dtype == at::kFloat ? run(k.combine_f_f, floats, to_floats) : run(k.combine_f_b, floats, to_halves);
  else
    to.dtype == at::kFloat ? run(k.combine_b_f, halves, to_floats) : run(k.combine_b_b, halves, to_halves);
}

/// Writes the transposes of n matrices, as rows x columns.
inline void move_across(const Blocks& from, const Blocks& to, int64_t n, int64_t rows, int64_t columns) {
  constexpr int64_t kTogether = 16;     // rows: whole lines of `from`
  constexpr int64_t kValues = 1 << 15;  // for one thread
  const engine::Mixing copies = engine::Mixing::copies(n);
  Blocks across = from;
  across.transposed = true;
  const auto write = [&]<class T>(T* out) {
    const int64_t grain = std::max<int64_t>(1, kValues / (n * columns * kTogether));
    at::parallel_for(0, (rows + kTogether - 1) / kTogether, grain, [&](int64_t begin, int64_t end) {
      const int64_t row = begin * kTogether, count = std::min(end * kTogether, rows) - row;
      engine::mix_block(kernels::cpu::active(), copies, across, n, row, 0, count, columns, out + row * to.row,
                        to.component, to.row);
    });
  };
  if (to.dtype == at::kFloat)
    write(static_cast<float*>(to.data));
  else
    write(static_cast<kernels::cpu::bf16*>(to.data));
}

/// Pieces as plain rows of n components of `width` values together: as they lie, or put side by side.
struct Rows {
  const float* data;
  int64_t apart;
};
template <Spare which>
Rows plain_rows(Pieces pieces, int64_t n, int64_t rows, int64_t width) {
  const Blocks& whole = pieces[0].blocks;
  // Rows that overlap, as an expanded tensor's do, no library of dense products takes, nor a distance that is
  // no int.
  if (pieces.size() == 1 && is_plain(whole, width) && whole.row >= n * width &&
      whole.row <= std::numeric_limits<int>::max())
    return {static_cast<const float*>(whole.data), whole.row};
  float* const all = spare<which>(rows * n * width);
  int64_t first = 0;
  for (const engine::Piece& piece : pieces) {
    move(piece.blocks, {all + first, width, n * width, false, at::kFloat}, n, rows, 0, piece.width, false);
    first += piece.width;
  }
  return {all, n * width};
}

}  // namespace quatrain::ops
