#pragma once

// Rows of weights, read once from memory, times a few vectors, for loops.h alone.

#include "kernels/cpu/vectors.h"

namespace quatrain::kernels::cpu {

namespace {

constexpr int kStreamVectors = 4;  // of a tile
constexpr int kStreamRows = kLanes == 16 ? 4 : 2;
// Rows of several vectors that are longer than this are taken two at a time: a real decoder with a beam of 4
// took 1.15 times as long with four, and a quaternion one with a single row, whose rows are short, 1.05 with
// two.
constexpr int64_t kLongStream = 256;
constexpr int64_t kStreamBytes = 1 << 18;  // of a strip of weights: a part of a second level cache

/// At most so many bytes of a tile's vectors are used at once, but at least a component's: they stay in the
/// first level cache.
constexpr int64_t kStreamVectorBytes = 8 << 10;

/// At most so many bytes of weights are fetched ahead, in whole tiles, at least one. For four vectors at once
/// they are fetched into the second level cache, which has more requests under way than the first; for single
/// ones, whose weights are used faster than a second level cache gives them, into the first.
constexpr int64_t kStreamAhead = 24 << 10;

/// A call of `stream`, at a strip of rows.
template <class T>
struct Streamed {
  const T* const* weights;
  int64_t components, together;  ///< in all, and summed at once
  int64_t weight_row, rows, cols;
  int64_t ahead;  ///< rows from a tile to the one that is fetched meanwhile
  const float* z;
  float* y;
  int64_t y_vector;
  const T* following;  ///< used after the last row, component for component; null: the rows that follow

  /// What is used so many rows after a row of a component: the next of its rows, or at a strip's end the
  /// first of those that follow it.
  const T* later(int64_t component, int64_t row) const {
    const int64_t then = row + ahead, next = component + together;
    if (then < rows) return weights[component] + then * weight_row;
    if (next < components) return weights[next] + (then - rows) * weight_row;
    if (following) return following + (weights[next % components] - weights[0]) + (then - rows) * weight_row;
    return weights[next % components] + then * weight_row;
  }
};

/// A tile of weight rows times a tile of vectors, of components first .. end; the sums stay in registers over
/// the whole length. Weights of a later tile are fetched meanwhile, in the order in which they lie: memory is
/// fastest so, and rows side by side are more streams than the machine foresees.
template <int height, int width, class T>
inline void stream_tile(const Streamed<T>& call, int64_t first, int64_t end, int64_t row, int64_t vector) {
  const int64_t cols = call.cols, length = call.components * cols;
  constexpr int kSums = height * width, kTogether = kSums < kLanes ? kSums : kLanes;
  Vec total[kSums] = {};  // [width][height]
  for (int64_t c = first; c < end; ++c) {
    const T *const w = call.weights[c] + row * call.weight_row, *const later = call.later(c, row);
    const float* v = call.z + vector * length + c * cols;
    int64_t q = 0;
    for (; q + kLanes <= cols; q += kLanes) {
      Vec x[width];
#pragma GCC unroll 8
      for (int g = 0; g < width; ++g) x[g] = load(v + g * length + q);
#pragma GCC unroll 8
      for (int t = 0; t < height; ++t) {
        if (t * kLanes % kInLine<T> == 0)
          __builtin_prefetch(later + height * q + t * kLanes, 0, width > 1 ? 2 : 3);
        const Vec s = load(w + t * call.weight_row + q);
#pragma GCC unroll 8
        for (int g = 0; g < width; ++g) total[g * height + t] += s * x[g];
      }
    }
    if (q < cols)
      for (int t = 0; t < height; ++t) {
        const Vec s = load_part(w + t * call.weight_row + q, cols - q);
        for (int g = 0; g < width; ++g) total[g * height + t] += s * load_part(v + g * length + q, cols - q);
      }
  }
  float found[kSums + kLanes];
  for (int i = 0; i < kSums; i += kTogether) store(found + i, sums<kTogether>(total + i));
  for (int g = 0; g < width; ++g)
    for (int t = 0; t < height; ++t) {
      float& y = call.y[(vector + g) * call.y_vector + row + t];
      y = first > 0 ? y + found[g * height + t] : found[g * height + t];
    }
}

template <int height, int width, class T>
inline void stream_tiles(const Streamed<T>& call, int64_t first, int64_t end, int64_t vector) {
  int64_t row = 0;
  for (; row + height <= call.rows; row += height) stream_tile<height, width>(call, first, end, row, vector);
  for (; row < call.rows; ++row) stream_tile<1, width>(call, first, end, row, vector);
}

template <int width, class T>
inline void stream_rows(const Streamed<T>& call, int64_t first, int64_t end, int64_t vector) {
  if (width > 1 && call.cols > kLongStream)
    stream_tiles<2, width>(call, first, end, vector);
  else
    stream_tiles<kStreamRows, width>(call, first, end, vector);
}

template <class T>
void stream(const T* const* weights, int32_t components, int64_t weight_row, int64_t rows, int64_t cols,
            const float* z, int64_t vectors, float* y, int64_t y_vector, const T* next) {
  const int64_t width = cols > 0 ? cols : 1, bytes = width * static_cast<int64_t>(sizeof(T));
  // Not of the number of rows or vectors: a sum's bits depend on it.
  int64_t together = kStreamVectorBytes / (kStreamVectors * 4 * width);
  together = together < 1 ? 1 : together < components ? together : components;
  const int64_t tiles = kStreamAhead / (kStreamRows * together * bytes);
  // Strips of weights that stay in the cache, where vectors pass over them more than once.
  const int64_t passes = vectors / kStreamVectors + vectors % kStreamVectors;
  int64_t strip = rows;
  if (passes > 1) strip = (kStreamBytes / (together * bytes)) & ~int64_t{kStreamRows - 1};
  if (strip < kStreamRows) strip = kStreamRows;
  const T* from[kMaxInputs];
  Streamed<T> call{.weights = from,
                   .components = components,
                   .together = together,
                   .weight_row = weight_row,
                   .rows = 0,
                   .cols = cols,
                   .ahead = kStreamRows * (tiles > 1 ? tiles : 1),
                   .z = z,
                   .y = y,
                   .y_vector = y_vector,
                   .following = nullptr};
  for (int64_t begin = 0; begin < rows; begin += strip) {
    call.rows = rows - begin < strip ? rows - begin : strip;
    for (int32_t c = 0; c < components; ++c) from[c] = weights[c] + begin * weight_row;
    call.y = y + begin;
    if (begin + strip >= rows) call.following = next;
    for (int64_t first = 0; first < components; first += together) {
      const int64_t end = first + together < components ? first + together : components;
      int64_t vector = 0;
      for (; vector + kStreamVectors <= vectors; vector += kStreamVectors)
        stream_rows<kStreamVectors>(call, first, end, vector);
      for (; vector < vectors; ++vector) stream_rows<1>(call, first, end, vector);
    }
  }
}

}  // namespace

}  // namespace quatrain::kernels::cpu
