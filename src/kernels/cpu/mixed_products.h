#pragma once

// Products of a few rows with mixtures of weights, for loops.h alone.

#include "kernels/cpu/mixtures.h"

namespace quatrain::kernels::cpu {

namespace {

// Sums of a tile, its mixtures and what they are made of fill the registers.
constexpr int kMixedRows = kLanes == 16 ? 4 : 2, kMixedOutputs = 4;

/// What a tile's mixtures are: four made of sums and differences of pairs, or inputs as they are.
enum class Made { in_pairs, copied };

/// Operands of consecutive outputs, and what is fetched meanwhile: from `ahead`, which moves on by `step`
/// bytes for each row of w.
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

/// A vector of each mixture, with the bits that `combine` gives it; `get` loads from an input.
template <int count, Made made, class Get>
[[gnu::always_inline]] inline void make_mixtures(const MixedTile& tile, const float* const (&in)[4],
                                                 const Get& get, Vec (&to)[count]) {
  if constexpr (made == Made::copied) {
#pragma GCC unroll 4
    for (int t = 0; t < count; ++t) to[t] = Vec{} + get(in[t]);
  } else {
    make_pairs(tile.mix, *tile.group, get(in[0]), get(in[1]), get(in[2]), get(in[3]), to);
  }
}

/// `count` outputs of so many rows and vectors of columns, or of the first `part` columns of one vector. A
/// function of its own, in whose registers nothing of the others is kept.
template <int rows, int vectors, int count, Made made, bool whole>
[[gnu::noinline]] void mixed_tile(const MixedTile& tile, int64_t part) {
  const float* in[4] = {};
#pragma GCC unroll 4
  for (int i = 0; i < (made == Made::copied ? count : 4); ++i)
    in[i] = made == Made::copied ? tile.input(i, 0) : tile.input(0, i);
  const char* x[rows];
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) x[i] = reinterpret_cast<const char*>(tile.x + i * tile.x_row);
  int64_t one = tile.x_output * static_cast<int64_t>(sizeof(float)), three = 3 * one;
  const char* ahead = tile.ahead;
  Vec sum[rows][count][vectors] = {};
  int64_t at = tile.w_at;
  for (int64_t k = 0; k < tile.depth; ++k, at += tile.w_row, ahead += tile.step) {
    asm("" : "+r"(one), "+r"(three));  // products.h says why
    Vec mixtures[vectors][count];
#pragma GCC unroll 2
    for (int v = 0; v < vectors; ++v)
      make_mixtures<count, made>(
          tile, in,
          [&](const float* w) {
            return whole ? load(w + at + v * kLanes) : load_part(w + at + v * kLanes, part);
          },
          mixtures[v]);
    for (const char* line = ahead; line < ahead + tile.step; line += kCacheLine)
      __builtin_prefetch(line, 0, 2);
    const int64_t distances[4] = {0, one, 2 * one, three};
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
      for (int t = 0; t < count; ++t) {
        const Vec a = *reinterpret_cast<const float*>(x[i] + distances[t]) - Vec{};  // in every lane
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) sum[i][t][v] += a * mixtures[v][t];
      }
      x[i] += sizeof(float);
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int t = 0; t < count; ++t)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        float* const y = tile.y[tile.first() + t] + i * tile.y_row + tile.y_at + v * kLanes;
        whole ? store(y, sum[i][t][v]) : store_part(y, sum[i][t][v], part);
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
    if (tile.group->paired) return mixed_rows<vectors, count, Made::in_pairs, whole, most>(rows, tile, part);
  mixed_rows<vectors, count, Made::copied, whole, most>(rows, tile, part);
}

void mixed_product(const Mix& mix, const float* const* w, int64_t w_row, int64_t depth, int64_t cols,
                   const float* x, int64_t x_output, int64_t x_row, int64_t rows, float* const* y,
                   int64_t y_row, const Fetched& next) {
  constexpr int kFewRows = kMixedRows / 2;  // these have too few sums under way in one vector
  const int64_t tall = (rows + kMixedRows - 1) / kMixedRows, wide = rows > kFewRows ? 1 : 2,
                across = (cols + wide * kLanes - 1) / (wide * kLanes);
  int64_t parts = 0;
  for (int32_t group = 0; group < mix.groups; ++parts)
    group += mix.group[group].paired ? 1 : outputs_at(mix, group);
  const int64_t steps = tall * across * parts * depth;
  MixedTile tile{mix, w, w_row, depth, x_output, x_row, y, y_row, nullptr, x, 0, 0, nullptr, 0};
  tile.step = steps > 0 ? next.count * 4 / steps : 0;
  tile.ahead = reinterpret_cast<const char*>(next.count > 0 ? next.from : x);
  for (int64_t col = 0; col < cols;) {
    const int64_t left = cols - col, width = left >= 2 * kLanes ? wide * kLanes
                                             : left < kLanes    ? left
                                                                : kLanes;
    for (int64_t group = 0, row = 0; group < tall; ++group) {
      const int64_t count = (rows - row) / (tall - group);
      for (int32_t g = 0; g < mix.groups;) {
        const int32_t outputs = outputs_at(mix, g);
        tile.group = &mix.group[g];
        tile.x = x + row * x_row + tile.first() * x_output;
        tile.w_at = col, tile.y_at = row * y_row + col;
        if (width == 2 * kLanes)
          mixed_outputs<2, true, kFewRows>(outputs, count, tile, 0);
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
