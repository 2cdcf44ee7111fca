#pragma once

// Products of a few rows with mixtures of weights, for loops.h alone.

#include "kernels/cpu/mixtures.h"

namespace quatrain::kernels::cpu {

namespace {

// Sums of a tile, its mixtures and what they are made of fill the registers. With two vectors of columns one
// or two rows asked for weights from memory faster than it gives them, and took up to 1.6 times as long. But
// a vector of AVX2 is half a line of memory, and a single row with one took 1.9 times as long.
constexpr int kMixedRows = kLanes == 16 ? 4 : 2, kMixedOutputs = 4;
constexpr int kSingleVectors = kLanes == 16 ? 1 : 2;  // of a single row

/// What a tile's mixtures are: four made of sums and differences of pairs, the same without coefficients, or
/// inputs as they are. The one factor of `as_hadamard`, a power of two, is multiplied with the sums in the
/// end: the same bits, where nothing leaves the range of normal numbers.
enum class Made { in_pairs, as_hadamard, copied };

/// Operands of consecutive outputs, and what is fetched meanwhile, twice the vectors of the tile for each row
/// of w: from `ahead`, which moves on by `step` bytes each time.
struct MixedTile {
  const Mix& mix;
  const float* const* w;
  int64_t w_row, depth;
  int64_t x_output, x_row;
  float* const* y;
  int64_t y_row;
  const MixGroup* group;  // of the outputs, the first of several that are copies
  const float* x;
  int64_t w_at, y_at;
  const char* ahead;
  int64_t step;

  int32_t first() const { return group->first; }
  /// The e-th input of output t.
  const float* input(int32_t t, int32_t e) const { return w[mix.source[mix.begin[first() + t] + e]]; }
};

/// A vector of each mixture, of a vector of each input: the bits that `combine` gives it, but for the factor
/// of `as_hadamard` and for the sign of a zero.
template <Made made, int count, int inputs>
[[gnu::always_inline]] inline void make_mixtures(const MixedTile& tile, const Vec (&in)[inputs],
                                                 Vec (&to)[count]) {
  if constexpr (made == Made::copied) {
#pragma GCC unroll 4
    for (int t = 0; t < count; ++t) to[t] = in[t];
  } else if constexpr (made == Made::as_hadamard) {
    // Sums cost less beside products than products with 1 and -1 do.
    const Vec a = in[0] + in[1], b = in[0] - in[1], c = in[2] + in[3], d = in[2] - in[3];
    to[0] = a + c, to[1] = b + d, to[2] = a - c, to[3] = b - d;
  } else {
    make_pairs(tile.mix, *tile.group, in[0], in[1], in[2], in[3], to);
  }
}

/// `count` outputs of so many rows and vectors of columns, or of the first `part` columns of one vector. A
/// function of its own, in whose registers nothing of the others is kept. There are just enough for its
/// addresses if each advances by itself, as the empty asm makes it; an address that the compiler keeps in a
/// vector costs a seventh.
template <int rows, int vectors, int count, Made made, bool whole>
[[gnu::noinline]] void mixed_tile(const MixedTile& tile, int64_t part) {
  constexpr int kInputs = made == Made::copied ? count : 4;
  constexpr auto kValue = static_cast<int64_t>(sizeof(float));
  constexpr int kFetchedLines = (2 * vectors * kLanes * kValue + kCacheLine - 1) / kCacheLine;
  const float *in[kInputs], *x[rows];
#pragma GCC unroll 4
  for (int i = 0; i < kInputs; ++i)
    in[i] = (made == Made::copied ? tile.input(i, 0) : tile.input(0, i)) + tile.w_at;
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) x[i] = tile.x + i * tile.x_row;
  const float* const end = x[0] + tile.depth;
  const char* ahead = tile.ahead;
  const int64_t w_row = tile.w_row, step = tile.step;
  int64_t one = tile.x_output * kValue, three = 3 * one;
  Vec sum[rows][count][vectors] = {};
  while (x[0] < end) {
    asm("" : "+r"(one), "+r"(three));  // products.h says why
    Vec mixtures[vectors][count];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v) {
      Vec inputs[kInputs];
#pragma GCC unroll 4
      for (int i = 0; i < kInputs; ++i)
        inputs[i] = whole ? load(in[i] + v * kLanes) : load_part(in[i] + v * kLanes, part);
      make_mixtures<made>(tile, inputs, mixtures[v]);
    }
#pragma GCC unroll 4
    for (const float*& from : in) {
      from += w_row;
      asm("" : "+r"(from));
    }
#pragma GCC unroll 2
    for (int line = 0; line < kFetchedLines; ++line) __builtin_prefetch(ahead + line * kCacheLine, 0, 2);
    ahead += step;
    const int64_t distances[4] = {0, one, 2 * one, three};
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
      for (int t = 0; t < count; ++t) {
        const char* const value = reinterpret_cast<const char*>(x[i]) + distances[t];
        const Vec a = *reinterpret_cast<const float*>(value) - Vec{};  // in every lane
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) sum[i][t][v] += a * mixtures[v][t];
      }
      ++x[i];
      asm("" : "+r"(x[i]));
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int t = 0; t < count; ++t)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        float* const y = tile.y[tile.first() + t] + i * tile.y_row + tile.y_at + v * kLanes;
        const Vec total = made == Made::as_hadamard ? tile.group->hadamard * sum[i][t][v] : sum[i][t][v];
        whole ? store(y, total) : store_part(y, total, part);
      }
}

template <int vectors, int count, Made made, bool whole, int rows>
inline void mixed_rows(int64_t height, const MixedTile& tile, int64_t part) {
  if constexpr (rows > 1)
    if (height < rows) return mixed_rows<vectors, count, made, whole, rows - 1>(height, tile, part);
  mixed_tile<rows, vectors, count, made, whole>(tile, part);
}

/// Outputs that a tile makes at once from this group on: its four, or copies, which are a group each.
inline int32_t outputs_at(const Mix& mix, int32_t group) {
  if (mix.group[group].paired) return kMixedOutputs;
  int32_t count = 0;
  while (count < kMixedOutputs && group + count < mix.groups && !mix.group[group + count].paired) ++count;
  return count;
}

template <int vectors, bool whole, int most, int count = kMixedOutputs>
inline void mixed_outputs(int32_t outputs, int64_t rows, const MixedTile& tile, int64_t part) {
  if constexpr (count > 1)
    if (outputs < count) return mixed_outputs<vectors, whole, most, count - 1>(outputs, rows, tile, part);
  if constexpr (count == kMixedOutputs)
    if (tile.group->paired) {
      if (tile.group->hadamard)
        return mixed_rows<vectors, count, Made::as_hadamard, whole, most>(rows, tile, part);
      return mixed_rows<vectors, count, Made::in_pairs, whole, most>(rows, tile, part);
    }
  mixed_rows<vectors, count, Made::copied, whole, most>(rows, tile, part);
}

void mixed_product(const Mix& mix, const float* const* w, int64_t w_row, int64_t depth, int64_t cols,
                   const float* x, int64_t x_output, int64_t x_row, int64_t rows, float* const* y,
                   int64_t y_row, const Fetched& next) {
  const int64_t wide = (rows == 1 ? kSingleVectors : 1) * kLanes, tall = (rows + kMixedRows - 1) / kMixedRows,
                across = (cols + wide - 1) / wide;
  int64_t parts = 0;
  for (int32_t group = 0; group < mix.groups; ++parts)
    group += mix.group[group].paired ? 1 : outputs_at(mix, group);
  const int64_t steps = tall * across * parts * depth;
  MixedTile tile{mix, w, w_row, depth, x_output, x_row, y, y_row, nullptr, x, 0, 0, nullptr, 0};
  tile.step = steps > 0 && next.from ? next.count * 4 / steps : 0;
  tile.ahead = reinterpret_cast<const char*>(tile.step > 0 ? next.from : x);
  for (int64_t col = 0; col < cols;) {
    const int64_t left = cols - col, width = left >= wide ? wide : left < kLanes ? left : kLanes;
    for (int64_t group = 0, row = 0; group < tall; ++group) {
      const int64_t count = (rows - row) / (tall - group);
      for (int32_t g = 0; g < mix.groups;) {
        const int32_t outputs = outputs_at(mix, g);
        tile.group = &mix.group[g];
        tile.x = x + row * x_row + tile.first() * x_output;
        tile.w_at = col, tile.y_at = row * y_row + col;
        if (width > kLanes)
          mixed_outputs<kSingleVectors, true, 1>(outputs, count, tile, 0);
        else if (width == kLanes)
          mixed_outputs<1, true, kMixedRows>(outputs, count, tile, 0);
        else
          mixed_outputs<1, false, kMixedRows>(outputs, count, tile, width);
        tile.ahead += depth * tile.step;
        g += tile.group->paired ? 1 : outputs;
      }
      row += count;
    }
    col += width;
  }
}

}  // namespace

}  // namespace quatrain::kernels::cpu
