#pragma once

// The kernels, in GCC's vector extension: included once by each instruction set's file, which is compiled
// with its own flags. Nothing here may have external linkage, and no header with templates may be included:
// the linker would keep one copy of their functions, perhaps one that this machine cannot run.
//
// All are bound by loads and stores: every input comes from the first or second level cache once for each
// output that uses it, sums stay in registers, and a column tail goes through a padded vector.

#include "kernels/cpu/cells.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/epilogues.h"
#include "kernels/cpu/mixtures.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/scores.h"
#include "kernels/cpu/winograd.h"

namespace quatrain::kernels::cpu {

namespace {

/// Two rows meet in the lanes of one vector.
void pair(const float* in, int64_t in_row, int64_t rows, int64_t cols, bf16* out, int64_t out_cols) {
  for (int64_t row = 0; row < rows; row += 2) {
    const float* x = in + row * in_row;
    bf16* y = out + row * out_cols;
    for (int64_t q = 0; q < out_cols; q += kLanes) {
      const int64_t count = cols - q;
      const auto get = [count](const float* p) {
        return count >= kLanes ? load(p) : count > 0 ? load_part(p, count) : Vec{};
      };
      const Vec low = get(x + q), high = row + 1 < rows ? get(x + in_row + q) : Vec{};
      *reinterpret_cast<BitsAtAnyAddress*>(y + 2 * q) = rounded(low) | (rounded(high) << 16);
    }
  }
}

template <class T>
void dots(const T* const* a, int32_t count_a, int64_t a_row, const float* const* b, int32_t count_b,
          int64_t b_row, int64_t rows, int64_t cols, float* sums) {
  constexpr int kTile = 4;
  for (int32_t i = 0; i < count_a; i += kTile)
    for (int32_t r = 0; r < count_b; r += kTile) {
      const int height = count_a - i < kTile ? count_a - i : kTile;
      const int width = count_b - r < kTile ? count_b - r : kTile;
      Vec total[kTile][kTile] = {};
      // A tile that hangs over the edge repeats its last operand; those sums are not used.
      const T* left[kTile];
      const float* right[kTile];
      for (int t = 0; t < kTile; ++t) {
        left[t] = a[i + (t < height ? t : height - 1)];
        right[t] = b[r + (t < width ? t : width - 1)];
      }
      const auto add = [&](int64_t row, int64_t q, const auto& get) {
        Vec x[kTile];
#pragma GCC unroll 4
        for (int t = 0; t < kTile; ++t) x[t] = get(left[t] + row * a_row + q);
#pragma GCC unroll 4
        for (int u = 0; u < kTile; ++u) {
          const Vec y = get(right[u] + row * b_row + q);
#pragma GCC unroll 4
          for (int t = 0; t < kTile; ++t) total[t][u] += x[t] * y;
        }
      };
      for (int64_t row = 0; row < rows; ++row) {
        int64_t q = 0;
        for (; q + kLanes <= cols; q += kLanes) add(row, q, [](const auto* p) { return load(p); });
        if (q < cols) add(row, q, [count = cols - q](const auto* p) { return load_part(p, count); });
      }
      for (int t = 0; t < height; ++t)
        for (int u = 0; u < width; ++u) sums[(i + t) * count_b + r + u] += sum(total[t][u]);
    }
}

/// Lane j of the result is a's or b's (by bit `step` of j) value in lane j plus that in the lane `step` away.
template <int step>
inline Vec merged(Vec a, Vec b) {
  const Lanes lane = lane_numbers(), odd = (lane & step) != 0;
  const Lanes here = lane + (odd & kLanes), there = (lane ^ step) + (odd & kLanes);
  return __builtin_shuffle(a, b, here) + __builtin_shuffle(a, b, there);
}

/// The sum of v's values, added in the order of `sums`: no bit depends on how rows are cut into tiles.
inline float sum_alike(Vec v) {
#pragma GCC unroll 4
  for (int step = 1; step < kLanes; step *= 2) v += __builtin_shuffle(v, lane_numbers() ^ step);
  return v[0];
}

/// The sums of as many vectors as they have lanes, each in its lane.
template <int step = 1, int count>
inline Vec sums(Vec (&v)[count]) {
  if constexpr (count == 1) {
    return v[0];
  } else {
    Vec half[count / 2];
#pragma GCC unroll 16
    for (int i = 0; i < count / 2; ++i) half[i] = merged<step>(v[2 * i], v[2 * i + 1]);
    return sums<2 * step>(half);
  }
}

/// A tile of weight rows times a tile of vectors; the sums stay in registers over the whole length. Weights
/// of the next tile are fetched meanwhile, in the order in which they lie: memory is fastest so, and rows
/// side by side are more streams than the machine foresees.
template <int height, int width, class T>
inline void stream_tile(const T* const* weights, int32_t components, int64_t weight_row, int64_t row,
                        int64_t cols, const float* z, float* y, int64_t y_vector) {
  const int64_t length = components * cols;
  constexpr int kSums = height * width;
  Vec total[kSums] = {};  // [width][height]
  for (int32_t c = 0; c < components; ++c) {
    const T* w = weights[c] + row * weight_row;
    const float* v = z + c * cols;
    int64_t q = 0;
    for (; q + kLanes <= cols; q += kLanes) {
      Vec x[width];
#pragma GCC unroll 8
      for (int g = 0; g < width; ++g) x[g] = load(v + g * length + q);
#pragma GCC unroll 8
      for (int t = 0; t < height; ++t) {
        __builtin_prefetch(w + height * (weight_row + q) + t * kLanes, 0, 3);
        const Vec s = load(w + t * weight_row + q);
#pragma GCC unroll 8
        for (int g = 0; g < width; ++g) total[g * height + t] += s * x[g];
      }
    }
    if (q < cols)
      for (int t = 0; t < height; ++t) {
        const Vec s = load_part(w + t * weight_row + q, cols - q);
        for (int g = 0; g < width; ++g) total[g * height + t] += s * load_part(v + g * length + q, cols - q);
      }
  }
  float found[kSums];
  if constexpr (kSums == kLanes)
    store(found, sums(total));
  else
    for (int i = 0; i < kSums; ++i) found[i] = sum_alike(total[i]);
  for (int g = 0; g < width; ++g)
    for (int t = 0; t < height; ++t) y[g * y_vector + t] = found[g * height + t];
}

template <int width, class T>
inline void stream_vectors(const T* const* weights, int32_t components, int64_t weight_row, int64_t rows,
                           int64_t cols, const float* z, float* y, int64_t y_vector) {
  constexpr int kHeight = kLanes == 16 ? 4 : 2;  // 4 x 4 sums and their operands fill 24 of 32 registers
  int64_t row = 0;
  for (; row + kHeight <= rows; row += kHeight)
    stream_tile<kHeight, width>(weights, components, weight_row, row, cols, z, y + row, y_vector);
  for (; row < rows; ++row)
    stream_tile<1, width>(weights, components, weight_row, row, cols, z, y + row, y_vector);
}

template <class T>
void stream(const T* const* weights, int32_t components, int64_t weight_row, int64_t rows, int64_t cols,
            const float* z, int64_t vectors, float* y, int64_t y_vector) {
  // Strips of rows whose weights stay in the second level cache while all vectors pass over them.
  const int64_t bytes = static_cast<int64_t>(components) * cols * static_cast<int64_t>(sizeof(T));
  int64_t strip = (1 << 18) / (bytes > 0 ? bytes : 1);
  strip = strip < 4 ? 4 : strip & ~int64_t{3};
  const int64_t length = components * cols;
  for (int64_t begin = 0; begin < rows; begin += strip) {
    const int64_t count = rows - begin < strip ? rows - begin : strip;
    const T* from[64];
    for (int32_t c = 0; c < components; ++c) from[c] = weights[c] + begin * weight_row;
    int64_t g = 0;
    for (; g + 4 <= vectors; g += 4)
      stream_vectors<4>(from, components, weight_row, count, cols, z + g * length, y + g * y_vector + begin,
                        y_vector);
    for (; g < vectors; ++g)
      stream_vectors<1>(from, components, weight_row, count, cols, z + g * length, y + g * y_vector + begin,
                        y_vector);
  }
}

constexpr Table make_table(const char* name) {
  return {name,
          &combine<float, float>,
          &combine<bf16, float>,
          &combine<float, bf16>,
          &combine<bf16, bf16>,
          &transpose<float, float>,
          &transpose<bf16, float>,
          &transpose<float, bf16>,
          &transpose<bf16, bf16>,
          &multiply,
          &pair,
          &product,
          &dots<float>,
          &dots<bf16>,
          &stream<float>,
          &stream<bf16>,
          &softmax,
          &exp_sum,
          &softmax_backward,
          &drop<float>,
          &drop<bf16>,
          &attend,
          &finish,
          &winograd,
          &cell_step,
          &cell_step_back};
}

}  // namespace

}  // namespace quatrain::kernels::cpu
