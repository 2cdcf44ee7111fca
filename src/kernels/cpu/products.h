#pragma once

// A product of a few rows, for loops.h alone.

#include "kernels/cpu/vectors.h"

namespace quatrain::kernels::cpu {

namespace {

// Sums of a tile, its columns of w and a value of x fill the registers.
constexpr int kProductRows = kLanes == 16 ? 12 : 6, kProductVectors = 2;
constexpr int kWidth = kProductVectors * kLanes;  // of a tile
constexpr int kFetchedLines = kWidth * 4 > kCacheLine ? 2 : 1;

/// A product's operands, from a tile's corner on, and what is fetched meanwhile: from `ahead`, which moves on
/// by `step` bytes for each row of w.
struct ProductTile {
  const float* x;
  int64_t x_row;
  const float* w;
  int64_t w_row;
  int64_t depth;
  float* y;
  int64_t y_row;
  const char* ahead;
  int64_t step;
};

/// y = x w of so many rows and vectors of columns, or of the first `part` columns of one vector.
template <int rows, int vectors, bool whole>
inline void product_tile(const ProductTile& t, int64_t part) {
  Vec sum[rows][vectors] = {};
  const float* w = t.w;
  const char* ahead = t.ahead;
  // One pointer for four rows, and the distances of the others, which processors add as they load. A pointer
  // for each row, which the compiler would make of constant distances, fills the registers from 8 rows on.
  constexpr int kTogether = 4;
  const float* x[(rows + kTogether - 1) / kTogether];
#pragma GCC unroll 3
  for (int i = 0; i < rows; i += kTogether) x[i / kTogether] = t.x + i * t.x_row;
  int64_t one = t.x_row, three = 3 * t.x_row;
#pragma GCC unroll 2
  for (int64_t k = 0; k < t.depth; ++k, w += t.w_row, ahead += t.step) {
    asm("" : "+r"(one), "+r"(three));  // not constant, as far as the compiler sees
    Vec b[vectors];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) b[v] = whole ? load(w + v * kLanes) : load_part(w, part);
#pragma GCC unroll 2
    for (int line = 0; line < kFetchedLines; ++line) __builtin_prefetch(ahead + line * kCacheLine, 0, 2);
#pragma GCC unroll 12
    for (int i = 0; i < rows; ++i) {
      const int64_t distances[kTogether] = {0, one, 2 * one, three};
      const Vec a = x[i / kTogether][distances[i % kTogether]] - Vec{};  // in every lane
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) sum[i][v] += a * b[v];
    }
#pragma GCC unroll 3
    for (const float*& of_four : x) ++of_four;
  }
#pragma GCC unroll 12
  for (int i = 0; i < rows; ++i) {
    float* const y = t.y + i * t.y_row;
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v)
      if (whole)
        store(y + v * kLanes, sum[i][v]);
      else
        store_part(y, sum[i][v], part);
  }
}

template <int vectors, bool whole, int rows = kProductRows>
inline void product_rows(int64_t count, const ProductTile& tile, int64_t part = 0) {
  if constexpr (rows > 1)
    if (count < rows) return product_rows<vectors, whole, rows - 1>(count, tile, part);
  product_tile<rows, vectors, whole>(tile, part);
}

void product(const float* x, int64_t x_row, int64_t rows, const float* w, int64_t w_row, int64_t depth,
             int64_t cols, float* y, int64_t y_row) {
  // Equal groups of rows: a last one of a row or two would wait for its sums.
  const int64_t groups = (rows + kProductRows - 1) / kProductRows, tiles = (cols + kWidth - 1) / kWidth,
                bytes = w_row * 4, step = bytes / (groups * tiles > 0 ? groups * tiles : 1);
  ProductTile tile{x,   x_row, w, w_row, depth, y, y_row, reinterpret_cast<const char*>(w + depth * w_row),
                   step};
  for (int64_t col = 0; col < cols; col += kWidth)
    for (int64_t group = 0, row = 0; group < groups; ++group) {
      const int64_t count = (rows - row) / (groups - group), left = cols - col;
      tile.x = x + row * x_row, tile.w = w + col, tile.y = y + row * y_row + col;
      if (left >= kWidth) {
        product_rows<kProductVectors, true>(count, tile);
      } else {
        int64_t done = 0;
        for (; done + kLanes <= left; done += kLanes, tile.w += kLanes, tile.y += kLanes)
          product_rows<1, true>(count, tile);
        if (done < left) product_rows<1, false>(count, tile, left - done);
      }
      tile.ahead += depth * step;
      row += count;
    }
}

}  // namespace

}  // namespace quatrain::kernels::cpu
