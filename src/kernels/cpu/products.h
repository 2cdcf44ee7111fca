#pragma once

// Small products, for loops.h alone.

#include "kernels/cpu/vectors.h"

namespace quatrain::kernels::cpu {

namespace {

// Sums of a tile, its columns of w and a value of x fill the registers.
constexpr int kProductRows = kLanes == 16 ? 12 : 6, kProductVectors = 2;
// Fewer rows have too few sums under way in tiles of that width: theirs are wider.
constexpr int kFewRows = kLanes == 16 ? 3 : 2, kMostVectors = 4;
constexpr int kSomeRows = kLanes == 16 ? kFewRows : 4, kMoreVectors = 3;

/// A product's operands, the corner of some tiles below each other in all links, and what is fetched
/// meanwhile: from `ahead`, which moves on by `step` bytes for each row of w.
struct ProductTile {
  const Links* links;
  int64_t x_at, w_at;
  int64_t x_row;
  int64_t w_row;
  int64_t depth;
  float* y;
  int64_t y_row;
  const char* ahead;
  int64_t step;
};

/// y = x w of `tiles` times so many rows, and of vectors of columns, or of the first `part` columns of one
/// vector; of all links, of which there is at least one. Moves on to the rows below. A function of its own,
/// in whose registers nothing of the others is kept.
template <int rows, int vectors, bool whole>
[[gnu::noinline]] void product_tiles(ProductTile& t, int64_t tiles, int64_t part) {
  // Lines that a row of w is long, of tiles of this width, or of those that a row ends with.
  constexpr int kLong = vectors > kProductVectors ? vectors : kProductVectors,
                kFetchedLines = (kLong * kLanes * 4 + kCacheLine - 1) / kCacheLine;
  const char* ahead = t.ahead;
  // One pointer for four rows, and the distances of the others in bytes, one, 2 * one and three, which
  // processors add as they load. A pointer for each row, which the compiler would make of constant distances,
  // fills the registers from 8 rows on.
  constexpr int kTogether = 4;
  int64_t one = t.x_row * static_cast<int64_t>(sizeof(float)), three = 3 * one;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    for (int64_t link = 0; link < t.links->count; ++link) {
      Vec sum[rows][vectors] = {};
      const float* w = t.links->w[link] + t.w_at;
      const char* x[(rows + kTogether - 1) / kTogether];
#pragma GCC unroll 3
      for (int i = 0; i < rows; i += kTogether)
        x[i / kTogether] = reinterpret_cast<const char*>(t.links->x[link] + t.x_at + i * t.x_row);
#pragma GCC unroll 2
      for (int64_t k = 0; k < t.depth; ++k, w += t.w_row, ahead += t.step) {
        asm("" : "+r"(one), "+r"(three));  // not constant, as far as the compiler sees
        Vec b[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) b[v] = whole ? load(w + v * kLanes) : load_part(w, part);
#pragma GCC unroll 4
        for (int line = 0; line < kFetchedLines; ++line) __builtin_prefetch(ahead + line * kCacheLine, 0, 2);
#pragma GCC unroll 12
        for (int i = 0; i < rows; ++i) {
          const int64_t distances[kTogether] = {0, one, 2 * one, three};
          const char* const value = x[i / kTogether] + distances[i % kTogether];
          const Vec a = *reinterpret_cast<const float*>(value) - Vec{};  // in every lane
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) sum[i][v] += a * b[v];
        }
#pragma GCC unroll 3
        for (const char*& of_four : x) of_four += sizeof(float);
      }
#pragma GCC unroll 12
      for (int i = 0; i < rows; ++i) {
        float* const y = t.y + i * t.y_row;
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
          if (whole)
            store(y + v * kLanes, link > 0 ? load(y + v * kLanes) + sum[i][v] : sum[i][v]);
          else
            store_part(y, link > 0 ? load_part(y, part) + sum[i][v] : sum[i][v], part);
      }
    }
    t.x_at += rows * t.x_row, t.y += rows * t.y_row;
  }
  t.ahead = ahead;
}

/// A tile of one vector of columns, of one link, and of rows of x that lie `apart` values apart; added to
/// what is there, if `more`. A product whose operand lies at a constant distance is one operation, where a
/// sum of two registers makes two of it. These tiles are so short that what they do beside products counts
/// too.
template <int rows, int apart>
[[gnu::noinline]] void narrow_tile(const float* x, const float* w, int64_t w_row, int64_t depth, float* y,
                                   int64_t y_row, bool more) {
  Vec sum[rows] = {};
  const float* const end = x + depth;
#pragma GCC unroll 1
  for (; x < end; w += w_row, ++x) {
    const Vec b = load(w);
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) sum[i] += (x[i * apart] - Vec{}) * b;
  }
  if (more) {
    float* from = y;
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i, from += y_row) {
      asm("" : "+r"(from));
      sum[i] = load(from) + sum[i];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i, y += y_row) {
    asm("" : "+r"(y));  // or the compiler finds the addresses of all rows first, and keeps them
    store(y, sum[i]);
  }
}

/// What such tiles have in common. `bytes` are fetched for each of them and each link, in whole lines.
struct Narrow {
  int64_t w_row, depth, y_row, bytes;
};

/// Tiles below each other, from x_at, w_at and y on. Fetches from `ahead` on, and gives where that ended.
template <int rows, int apart>
inline const char* narrow_tiles(const Links& links, int64_t x_at, int64_t w_at, const Narrow& n, float* y,
                                int64_t tiles, const char* ahead) {
  for (int64_t tile = 0; tile < tiles; ++tile, x_at += rows * apart, y += rows * n.y_row)
    for (int64_t link = 0; link < links.count; ++link) {
      for (const char* const end = ahead + n.bytes; ahead < end; ahead += kCacheLine)
        __builtin_prefetch(ahead, 0, 2);
      narrow_tile<rows, apart>(links.x[link] + x_at, links.w[link] + w_at, n.w_row, n.depth, y, n.y_row,
                               link > 0);
    }
  return ahead;
}

constexpr int kTall = 16, kShort = 8;  // rows of narrow tiles

/// The rows of one vector of columns, but for a few that may be left.
template <int apart>
const char* narrow_rows(const Links& links, int64_t w_at, const Narrow& n, float* y, int64_t rows,
                        const char* ahead) {
  const int64_t tall = rows / kTall;
  ahead = narrow_tiles<kTall, apart>(links, 0, w_at, n, y, tall, ahead);
  if (rows % kTall >= kShort)
    ahead = narrow_tiles<kShort, apart>(links, tall * kTall * apart, w_at, n, y + tall * kTall * n.y_row, 1,
                                        ahead);
  return ahead;
}

/// The one for rows of x at this distance; null where there is none.
using NarrowRows = const char* (*)(const Links& links, int64_t w_at, const Narrow& n, float* y, int64_t rows,
                                   const char* ahead);
inline NarrowRows narrow_rows_for(int64_t x_row, int64_t rows) {
  if constexpr (kLanes == 16)
    if (rows >= kShort) switch (x_row) {
        case 16:
          return &narrow_rows<16>;
        case 32:
          return &narrow_rows<32>;
        case 64:
          return &narrow_rows<64>;
      }
  return nullptr;
}
/// Tiles that it takes, with that of the rest.
inline int64_t narrow_count(int64_t rows) {
  return rows / kTall + (rows % kTall >= kShort) + (rows % kShort > 0);
}

/// One tile of `count` rows, at most `rows`.
template <int vectors, bool whole, int rows>
inline void product_rest(int64_t count, ProductTile& tile, int64_t part) {
  if constexpr (rows > 1)
    if (count < rows) return product_rest<vectors, whole, rows - 1>(count, tile, part);
  product_tiles<rows, vectors, whole>(tile, 1, part);
}

/// Rows in tiles of `most`. What is left over is the last tile; if it had too few rows, whose sums it would
/// wait for, it shares those of the tile before.
template <int most>
struct ProductRows {
  int64_t tiles, rest, last;
  explicit ProductRows(int64_t rows) : tiles(rows / most), rest(rows % most), last(0) {
    if (tiles == 0 || rest == 0 || rest > most / 3) return;
    --tiles;
    last = (most + rest) / 2;
    rest += most - last;
  }
  int64_t count() const { return tiles + (rest > 0) + (last > 0); }
};

/// A tile of columns, of all rows.
template <int vectors, bool whole, int most>
inline void product_columns(const ProductRows<most>& rows, ProductTile& tile, int64_t part) {
  if (rows.tiles > 0) product_tiles<most, vectors, whole>(tile, rows.tiles, part);
  if (rows.rest > 0) product_rest<vectors, whole, most>(rows.rest, tile, part);
  if (rows.last > 0) product_rest<vectors, whole, most>(rows.last, tile, part);
}

/// Of `left` columns those of the next tile.
inline int64_t columns_of_tile(int64_t rows, int64_t left) {
  const int64_t vectors = left / kLanes;
  if (vectors == 0) return left;
  if (rows <= kFewRows && vectors >= kMostVectors) return kMostVectors * kLanes;
  if (rows <= kSomeRows && vectors >= kMoreVectors && vectors % 2) return kMoreVectors * kLanes;
  return (vectors < kProductVectors ? vectors : kProductVectors) * kLanes;
}

void products(const Links* of, int64_t count, int64_t x_row, int64_t rows, int64_t w_row, int64_t depth,
              int64_t cols, float* const* y, int64_t y_row, const Fetched& next) {
  if (count == 0 || rows == 0) return;
  const ProductRows<kProductRows> in_tiles(rows);
  const NarrowRows narrow = narrow_rows_for(x_row, rows);
  int64_t tiles = 0;
  for (int64_t col = 0, width; col < cols; col += width) {
    width = columns_of_tile(rows, cols - col);
    tiles += narrow && width == kLanes ? narrow_count(rows) : in_tiles.count();
  }
  int64_t steps = 0, step = 0;
  const bool fetches = next.from && next.count > 0;
  if (fetches) {
    for (int64_t i = 0; i < count; ++i) steps += of[i].count * depth * tiles;
    if (steps > 0) step = (next.count * 4 + steps - 1) / steps;
  }
  // One for all: a copy of it is read by vectors, which wait for the values just written one by one.
  ProductTile tile{of, 0, 0, x_row, w_row, depth, *y, y_row, nullptr, step};
  tile.ahead = reinterpret_cast<const char*>(fetches ? next.from : *y);
  const Narrow n{w_row, depth, y_row, step * depth};
  for (int64_t i = 0; i < count; ++i) {
    if (of[i].count == 0 || depth == 0) {
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t col = 0; col < cols; ++col) y[i][row * y_row + col] = 0;
      continue;
    }
    tile.links = of + i;
    for (int64_t col = 0, width; col < cols; col += width) {
      width = columns_of_tile(rows, cols - col);
      if (width == kLanes && narrow) {
        tile.ahead = narrow(of[i], col, n, y[i] + col, rows, tile.ahead);
        if (rows % kShort == 0) continue;
        const int64_t done = rows / kShort * kShort;
        tile.x_at = done * x_row, tile.w_at = col, tile.y = y[i] + col + done * y_row;
        product_rest<1, true, kProductRows>(rows % kShort, tile, 0);
        continue;
      }
      tile.x_at = 0, tile.w_at = col, tile.y = y[i] + col;
      if (width == kMostVectors * kLanes)
        product_rest<kMostVectors, true, kFewRows>(rows, tile, 0);
      else if (width == kMoreVectors * kLanes)
        product_rest<kMoreVectors, true, kSomeRows>(rows, tile, 0);
      else if (width == kProductVectors * kLanes)
        product_columns<kProductVectors, true>(in_tiles, tile, 0);
      else if (width == kLanes)
        product_columns<1, true>(in_tiles, tile, 0);
      else
        product_columns<1, false>(in_tiles, tile, width);
    }
  }
}

}  // namespace

}  // namespace quatrain::kernels::cpu
