#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/kernels.h"
#include "ops/engine/engine.h"
#include "ops/engine/few.h"

/// The operands of engine.cpp's products: mixtures of the given blocks, laid out in T as ATen's brgemm reads
/// them.
namespace quatrain::ops::engine {

constexpr int64_t kLine = 64;           // bytes; rows of mixtures start at its multiples
constexpr int64_t kPackedColumns = 16;  // what packed products like to have a multiple of

template <class T>
constexpr int64_t kInLine = kLine / static_cast<int64_t>(sizeof(T));
/// Off the powers of two, whose multiples share cache sets.
template <class T>
constexpr int64_t kSkew = kInLine<T>;
template <class T>
constexpr bool kPacked = std::is_same_v<T, kernels::cpu::bf16>;

/// Rows of K and columns of N in the right operand of a product.
template <class T>
int64_t stored_depth(int64_t depth) {
  return kPacked<T> ? (depth + 1) / 2 * 2 : depth;
}
template <class T>
int64_t stored_columns(int64_t cols) {
  return kPacked<T> ? (cols + kPackedColumns - 1) / kPackedColumns * kPackedColumns : cols;
}

/// out[r] = sum_j mix[j, r] blocks_j[row .. row + rows, col .. col + cols], rows out_row apart.
template <class T>
void mix_block(const kernels::cpu::Table& k, const Mixing& mixing, const Blocks& blocks, int64_t n,
               int64_t row, int64_t col, int64_t rows, int64_t cols, T* out, int64_t out_component,
               int64_t out_row) {
  const kernels::cpu::Mix mix = mixing.view();
  Few<T*> to(mix.outputs);
  for (int32_t r = 0; r < mix.outputs; ++r) to[r] = out + r * out_component;
  const auto run = [&](const auto combine, const auto transpose, const auto** in) {
    pointers(blocks, n, row, col, in);
    if (blocks.transposed)
      transpose(mix, static_cast<int32_t>(n), in, blocks.row, to.data(), out_row, cols, rows);
    else
      combine(mix, in, blocks.row, to.data(), out_row, rows, cols, nullptr, kernels::cpu::Store::set);
  };
  const float* floats[kMaxComponents];
  const kernels::cpu::bf16* halves[kMaxComponents];
  if constexpr (kPacked<T>) {
    if (blocks.dtype == at::kFloat)
      run(k.combine_f_b, k.transpose_f_b, floats);
    else
      run(k.combine_b_b, k.transpose_b_b, halves);
  } else {
    if (blocks.dtype == at::kFloat)
      run(k.combine_f_f, k.transpose_f_f, floats);
    else
      run(k.combine_b_f, k.transpose_b_f, halves);
  }
}

/// The same of pieces side by side.
template <class T>
void mix_pieces(const kernels::cpu::Table& k, const Mixing& mixing, Pieces pieces, int64_t n, int64_t row,
                int64_t col, int64_t rows, int64_t cols, T* out, int64_t out_component, int64_t out_row) {
  if (pieces.size() == 1)
    return mix_block(k, mixing, pieces[0].blocks, n, row, col, rows, cols, out, out_component, out_row);
  int64_t first = -col;  // column of a piece's first one, counted from `col`
  for (const Piece& piece : pieces) {
    const int64_t begin = std::max<int64_t>(first, 0), end = std::min(first + piece.width, cols);
    if (begin < end)
      mix_block(k, mixing, piece.blocks, n, row, begin - first, rows, end - begin, out + begin, out_component,
                out_row);
    first += piece.width;
  }
}

/// The left operands of a panel: R mixtures in scratch memory, of so many rows of `depth` values at most.
/// With `in_place` one that is an input as it is is not made, but read where the input lies.
template <class T>
class Left {
 public:
  Left(const Pass& p, int64_t rows, int64_t depth, bool in_place)
      : p_(p),
        mixing_(in_place ? p.left->made() : *p.left),
        in_place_(in_place),
        row_(depth + kSkew<T>),
        component_(rows * row_ + kSkew<T>),
        at_(p.rank),
        rows_(p.rank) {}

  /// Values of scratch memory, and where they are.
  int64_t size() const { return mixing_.view().outputs * component_; }
  void take(T* memory) { memory_ = memory; }
  /// From one mixture to the next, where all are made.
  int64_t component() const { return component_; }

  void make(const kernels::cpu::Table& k, int64_t row, int64_t rows, int64_t col, int64_t cols) {
    const int64_t made = mixing_.view().outputs;
    if (made > 0) mix_pieces(k, mixing_, p_.A, p_.n, row, col, rows, cols, memory_, component_, row_);
    if (stored_depth<T>(cols) > cols)  // its partner is zero, but a NaN left here would not be
      for (int64_t r = 0; r < made; ++r)
        for (int64_t i = 0; i < rows; ++i) memory_[r * component_ + i * row_ + cols] = 0;
    for (int64_t r = 0, next = 0; r < p_.rank; ++r) {
      const int32_t input = in_place_ ? p_.left->plain(r) : -1;
      const Blocks& inputs = p_.A[0].blocks;
      at_[r] = input < 0
                   ? memory_ + next++ * component_
                   : static_cast<const T*>(inputs.data) + input * inputs.component + row * inputs.row + col;
      rows_[r] = input < 0 ? row_ : inputs.row;
    }
  }

  /// Mixture r from the given one of these rows on, and how far its rows are apart.
  const T* at(int64_t r, int64_t row) { return at_[r] + row * rows_[r]; }
  int64_t row(int64_t r) { return rows_[r]; }

 private:
  const Pass& p_;
  const Mixing& mixing_;
  const bool in_place_;
  const int64_t row_, component_;
  T* memory_ = nullptr;
  Few<const T*> at_;
  Few<int64_t> rows_;
};

/// The right operands of a block: R matrices, one after the other, each in strips of columns that lie
/// together. `scratch` holds R matrices of `most` rows and kColumns columns; `most` is even.
template <class T>
void mix_right(const kernels::cpu::Table& k, const Pass& p, int64_t row, int64_t col, int64_t rows,
               int64_t cols, T* out, float* scratch, int64_t most) {
  const int64_t width = stored_columns<T>(cols), component = stored_depth<T>(rows) * width;
  if constexpr (kPacked<T>) {
    const int64_t apart = most * kColumns;
    for (int64_t done = 0; done < rows; done += most) {
      const int64_t count = std::min(most, rows - done);
      mix_pieces(k, *p.right, p.B, p.n, row + done, col, count, cols, scratch, apart, kColumns);
      for (int64_t r = 0; r < p.rank; ++r)
        k.pair(scratch + r * apart, kColumns, count, cols, out + r * component + done * width, width);
    }
  } else {
    for (int64_t done = 0; done < cols; done += layout().columns) {
      const int64_t together = std::min(layout().columns, cols - done);
      mix_pieces(k, *p.right, p.B, p.n, row, col + done, rows, together, out + done * rows, component,
                 together);
    }
  }
}

}  // namespace quatrain::ops::engine
