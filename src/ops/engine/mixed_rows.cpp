#include "ops/engine/mixed_rows.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <vector>

#include "ops/engine/few.h"
#include "ops/engine/next_weights.h"
#include "ops/engine/products.h"

namespace quatrain::ops::engine {

namespace {

constexpr int64_t kMixedBytes = 1 << 19;  // of mixed inputs: they are read again for every strip of weights
constexpr int64_t kWork = 1 << 17;        // products of a strip: enough to be worth a thread

/// rows of n mixtures times packed blocks, in columns begin .. end of y.
void multiply_streamed(const Stream& s, int64_t rows, const float* mixed, int64_t begin, int64_t end,
                       float* y) {
  const int64_t depth = s.n * s.p, together = s.together;
  const auto block_at = [&](int64_t col) { return s.packed + col / together * together * depth; };
  const float* const after = next_weights(block_at(begin));
  for (int64_t col = begin; col < end;) {
    const int64_t block = col / together * together, width = std::min(together, s.m - block),
                  cols = std::min(block + width, end) - col;
    const float* const part = block_at(col) + (col - block);
    linked_product(rows * s.n, cols, depth, {&mixed, &part, 1}, depth, width, y + col, s.m,
                   {col + cols < end ? block_at(col + cols) : after, depth * width});
    col += cols;
  }
}

}  // namespace

int64_t columns_together(int64_t vectors) {
  constexpr int64_t kRow = 4;
  return vectors <= kRow ? layout().row_columns : layout().few_columns;
}

void pack(const Stream& s, float* to) {
  const auto& k = kernels::cpu::active();
  const int64_t together = s.together;
  at::parallel_for(0, (s.m + together - 1) / together, 1, [&](int64_t begin, int64_t end) {
    const float* from[kMaxComponents];
    Few<float*> out(s.n);
    for (int64_t block = begin * together; block < std::min(end * together, s.m); block += together) {
      const int64_t width = std::min(together, s.m - block);
      pointers(s.S, s.n, block, 0, from);
      for (int64_t i = 0; i < s.n; ++i) out[i] = to + (block * s.n + i * width) * s.p;
      k.transpose_f_f(copies_of(s.n), static_cast<int32_t>(s.n), from, s.S.row, out.data(), width, width,
                      s.p);
    }
  });
}

void run(const Stream& s) {
  const auto& k = kernels::cpu::active();
  const int64_t vectors = s.n * s.n, width = s.n * s.m, top = s.columns.begin,
                height = s.columns.end_of(s.m) - top;
  if (height <= 0) return;
  const int64_t chunk = std::clamp<int64_t>(kMixedBytes / (vectors * s.p * 4), 1, s.rows);
  static thread_local std::vector<float> mixed;
  mixed.resize(static_cast<size_t>(chunk * vectors * s.p));
  float* const z = mixed.data();
  Few<float*> to(vectors);
  const float* floats[kMaxComponents];
  const kernels::cpu::bf16* halves[kMaxComponents];
  for (int64_t row = 0; row < s.rows; row += chunk) {
    const int64_t rows = std::min(chunk, s.rows - row);
    float* const y = s.y + row * width;
    int64_t first = 0;
    for (const Piece& piece : s.x) {
      for (int64_t v = 0; v < vectors; ++v) to[v] = z + v * s.p + first;
      const auto mix = [&](const auto combine, const auto** in) {
        pointers(piece.blocks, s.n, row, 0, in);
        combine(s.inputs->view(), in, piece.blocks.row, to.data(), vectors * s.p, rows, piece.width, nullptr,
                kernels::cpu::Store::set);
      };
      if (piece.blocks.dtype == at::kFloat)
        mix(k.combine_f_f, floats);
      else
        mix(k.combine_b_f, halves);
      first += piece.width;
    }
    // Of a packed block, whole ones.
    const int64_t least = s.packed ? s.together : 16,
                  strip = std::max<int64_t>(least, kWork / (s.n * s.p * rows * s.n) / least * least);
    at::parallel_for(0, (height + strip - 1) / strip, 1, [&](int64_t begin, int64_t end) {
      const int64_t first = top + begin * strip, count = top + std::min(end * strip, height) - first;
      if (s.packed) return multiply_streamed(s, rows, z, first, first + count, y);
      const auto pass_over = [&](const auto stream, const auto** weights) {
        pointers(s.S, s.n, first, 0, weights);
        stream(weights, static_cast<int32_t>(s.n), s.S.row, count, s.p, z, rows * s.n, y + first, s.m,
               next_weights(weights[0]));
      };
      const float* of_floats[kMaxComponents];
      const kernels::cpu::bf16* of_halves[kMaxComponents];
      if (s.S.dtype == at::kFloat)
        pass_over(k.stream_f, of_floats);
      else
        pass_over(k.stream_b, of_halves);
    });
    if (s.bias)
      for (int64_t row = 0; row < rows * s.n; ++row)
        for (int64_t i = top; i < top + height; ++i) y[row * s.m + i] += s.bias[row % s.n * s.m + i];
  }
}

}  // namespace quatrain::ops::engine
