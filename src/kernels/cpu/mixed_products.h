#pragma once

// Products of a few rows with mixtures of weights, for loops.h alone.

#include "kernels/cpu/mixtures.h"

namespace quatrain::kernels::cpu {

namespace {

// Sums of a tile, its mixtures and what they are made of fill the registers.
constexpr int kMixedRows = kLanes == 16 ? 4 : 2, kMixedOutputs = 4;

/// How a tile's mixtures are made: four of sums and differences of pairs, four that share their first four
/// inputs, four that are inputs as they are, or so many each by itself.
enum class Made { in_pairs, together, copied, alone };

/// Operands of consecutive outputs, and what is fetched meanwhile: from `ahead`, which moves on by `step`
/// bytes for each row of w.
struct MixedTile {
  const Mix& mix;
  const float* const* w;
  int64_t w_row, depth;
  int64_t x_output, x_row;
  float* const* y;
  int64_t y_row;
  int32_t first;          // of the outputs
  const MixGroup* group;  // theirs, where they are made together
  const float* x;
  int64_t w_at, y_at;
  const char* ahead;
  int64_t step;
};

/// A vector of each mixture, with the bits that `combine` gives it; `get` loads from w.
template <int count, Made made, class Get>
[[gnu::always_inline]] inline void make_mixtures(const MixedTile& tile, const float* const (&in)[4],
                                                 const Get& get, Vec (&to)[count]) {
  const Mix& mix = tile.mix;
  if constexpr (made == Made::copied) {
#pragma GCC unroll 4
    for (int t = 0; t < count; ++t) to[t] = Vec{} + get(in[t]);
    return;
  }
#pragma GCC unroll 4
  for (int t = 0; t < count; ++t) to[t] = Vec{};
  if constexpr (made == Made::alone) {
#pragma GCC unroll 4
    for (int t = 0; t < count; ++t)
      for (int32_t e = mix.begin[tile.first + t]; e < mix.begin[tile.first + t + 1]; ++e)
        to[t] += mix.coefficient[e] * get(tile.w[mix.source[e]]);
    return;
  }
  const MixGroup& group = *tile.group;
  const float* const shared = mix.shared + group.coefficients;
  const int32_t* const source = mix.source + mix.begin[tile.first];
  if constexpr (made == Made::in_pairs) {
    Vec u[2], v[2];
    sum_and_difference(get(in[0]), get(in[1]), Bits{} + (group.opposite[0] ? kSign : 0), u);
    sum_and_difference(get(in[2]), get(in[3]), Bits{} + (group.opposite[1] ? kSign : 0), v);
#pragma GCC unroll 4
    for (int t = 0; t < count; ++t) to[t] += shared[t] * u[t % 2];
#pragma GCC unroll 4
    for (int t = 0; t < count; ++t) to[t] += shared[2 * count + t] * v[t % 2];
  } else {
#pragma GCC unroll 4
    for (int e = 0; e < 4; ++e) {
      const Vec input = get(in[e]);
#pragma GCC unroll 4
      for (int t = 0; t < count; ++t) to[t] += shared[e * count + t] * input;
    }
  }
  for (int32_t e = 4; e < group.common; ++e) {
    const Vec input = get(tile.w[source[e]]);
#pragma GCC unroll 4
    for (int t = 0; t < count; ++t) to[t] += shared[e * count + t] * input;
  }
  if (group.more == More::none) return;
#pragma GCC unroll 4
  for (int t = 0; t < count; ++t)
    for (int32_t own = mix.begin[tile.first + t] + group.common; own < mix.begin[tile.first + t + 1]; ++own)
      to[t] += mix.coefficient[own] * get(tile.w[mix.source[own]]);
}

/// `count` outputs of so many rows and vectors of columns, or of the first `part` columns of one vector. A
/// function of its own, in whose registers nothing of the others is kept.
template <int rows, int vectors, int count, Made made, bool whole>
[[gnu::noinline]] void mixed_tile(const MixedTile& tile, int64_t part) {
  constexpr int kLines = 2 * vectors;
  const float* in[4] = {};
  if constexpr (made != Made::alone)
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
      in[i] = tile.w[tile.mix.source[tile.mix.begin[tile.first + (made == Made::copied ? i : 0)] +
                                     (made == Made::copied ? 0 : i)]];
  const float* x[rows];
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) x[i] = tile.x + i * tile.x_row;
  int64_t one = tile.x_output, three = 3 * tile.x_output;
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
#pragma GCC unroll 4
    for (int line = 0; line < kLines; ++line) __builtin_prefetch(ahead + line * kCacheLine, 0, 2);
    const int64_t distances[4] = {0, one, 2 * one, three};
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
      for (int t = 0; t < count; ++t) {
        const Vec a = x[i][distances[t]] - Vec{};  // in every lane
#pragma GCC unroll 2
        for (int v = 0; v < vectors; ++v) sum[i][t][v] += a * mixtures[v][t];
      }
      ++x[i];
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i)
#pragma GCC unroll 4
    for (int t = 0; t < count; ++t)
#pragma GCC unroll 2
      for (int v = 0; v < vectors; ++v) {
        float* const y = tile.y[tile.first + t] + i * tile.y_row + tile.y_at + v * kLanes;
        whole ? store(y, sum[i][t][v]) : store_part(y, sum[i][t][v], part);
      }
}

template <int vectors, int count, Made made, bool whole, int rows>
inline void mixed_rows(int64_t height, const MixedTile& tile, int64_t part) {
  if constexpr (rows > 1)
    if (height < rows) return mixed_rows<vectors, count, made, whole, rows - 1>(height, tile, part);
  mixed_tile<rows, vectors, count, made, whole>(tile, part);
}

/// Outputs that a tile makes at once, the first of which is tile.first, and how.
struct MixedOutputs {
  int32_t count;
  Made made;
};

/// `group` comes after all whose outputs were before.
inline MixedOutputs outputs_at(const Mix& mix, int32_t group) {
  const MixGroup& first = mix.group[group];
  if (first.count == kMixedOutputs && first.common >= 4)
    return {first.count, first.paired ? Made::in_pairs : Made::together};
  int32_t count = 0;
  bool copied = true;
  for (; group < mix.groups && count + mix.group[group].count <= kMixedOutputs; ++group) {
    const MixGroup& next = mix.group[group];
    const int32_t e = mix.begin[next.first];
    copied = copied && next.count == 1 && mix.begin[next.first + 1] == e + 1 && mix.coefficient[e] == 1;
    count += next.count;
  }
  return {count, copied && count == kMixedOutputs ? Made::copied : Made::alone};
}

template <int vectors, bool whole, int most>
inline void mixed_outputs(const MixedOutputs& outputs, int64_t rows, const MixedTile& tile, int64_t part) {
  const auto run = [&]<int count, Made made>() {
    mixed_rows<vectors, count, made, whole, most>(rows, tile, part);
  };
  if (outputs.made == Made::in_pairs) return run.template operator()<4, Made::in_pairs>();
  if (outputs.made == Made::together) return run.template operator()<4, Made::together>();
  if (outputs.made == Made::copied) return run.template operator()<4, Made::copied>();
  if (outputs.count == 4) return run.template operator()<4, Made::alone>();
  if (outputs.count == 3) return run.template operator()<3, Made::alone>();
  if (outputs.count == 2) return run.template operator()<2, Made::alone>();
  run.template operator()<1, Made::alone>();
}

void mixed_product(const Mix& mix, const float* const* w, int64_t w_row, int64_t depth, int64_t cols,
                   const float* x, int64_t x_output, int64_t x_row, int64_t rows, float* const* y,
                   int64_t y_row, const Fetched& next) {
  constexpr int kFewRows = kMixedRows / 2;  // these have too few sums under way in one vector
  const int64_t tall = (rows + kMixedRows - 1) / kMixedRows, wide = rows > kFewRows ? 1 : 2,
                across = (cols + wide * kLanes - 1) / (wide * kLanes);
  int64_t parts = 0;
  for (int32_t group = 0; group < mix.groups; ++parts)
    for (int32_t left = outputs_at(mix, group).count; left > 0; ++group) left -= mix.group[group].count;
  const int64_t steps = tall * across * parts * depth;
  MixedTile tile{mix, w, w_row, depth, x_output, x_row, y, y_row, 0, nullptr, x, 0, 0, nullptr, 0};
  tile.step = steps > 0 ? next.count * 4 / steps : 0;
  tile.ahead = reinterpret_cast<const char*>(next.count > 0 ? next.from : x);
  for (int64_t col = 0; col < cols;) {
    const int64_t left = cols - col, width = left >= 2 * kLanes ? wide * kLanes
                                             : left < kLanes    ? left
                                                                : kLanes;
    for (int64_t group = 0, row = 0; group < tall; ++group) {
      const int64_t count = (rows - row) / (tall - group);
      for (int32_t g = 0; g < mix.groups;) {
        const MixedOutputs outputs = outputs_at(mix, g);
        tile.first = mix.group[g].first, tile.group = &mix.group[g];
        tile.x = x + row * x_row + tile.first * x_output;
        tile.w_at = col, tile.y_at = row * y_row + col;
        if (width == 2 * kLanes)
          mixed_outputs<2, true, kFewRows>(outputs, count, tile, 0);
        else if (width == kLanes)
          mixed_outputs<1, true, kMixedRows>(outputs, count, tile, 0);
        else
          mixed_outputs<1, false, kMixedRows>(outputs, count, tile, width);
        tile.ahead += depth * tile.step;
        for (int32_t done = 0; done < outputs.count; ++g) done += mix.group[g].count;
      }
      row += count;
    }
    col += width;
  }
}

}  // namespace

}  // namespace quatrain::kernels::cpu
