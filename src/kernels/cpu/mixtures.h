#pragma once

// Linear mixtures of matrices, as they lie and transposed, for loops.h alone.

#include "kernels/cpu/vectors.h"

namespace quatrain::kernels::cpu {

namespace {

constexpr int kMaxInputs = 64;  // the largest n of an algebra

/// A block of height x width vectors of every output; the last one of a row may have `count` lanes only.
template <int height, int width, bool part, class In, class Out>
inline void combine_block(const Mix& mix, const In* const* in, int64_t in_row, Out* const* out,
                          int64_t out_row, int64_t from, int64_t to, int64_t q, int64_t count,
                          const float* const* bias, Store how) {
  const auto get = [count](auto* p) { return part ? load_part(p, count) : load(p); };
  for (int32_t o = 0; o < mix.outputs; ++o) {
    Vec s[height][width];
    Out* y = out[o] + to + q;
#pragma GCC unroll 8
    for (int h = 0; h < height; ++h)
#pragma GCC unroll 8
      for (int v = 0; v < width; ++v) {
        s[h][v] = bias ? get(bias[o] + q + v * kLanes) : Vec{};
        if (how == Store::add) s[h][v] += get(y + h * out_row + v * kLanes);
      }
    for (int32_t e = mix.begin[o]; e < mix.begin[o + 1]; ++e) {
      const In* x = in[mix.source[e]] + from + q;
      const float c = mix.coefficient[e];
#pragma GCC unroll 8
      for (int h = 0; h < height; ++h)
#pragma GCC unroll 8
        for (int v = 0; v < width; ++v) s[h][v] += c * get(x + h * in_row + v * kLanes);
    }
#pragma GCC unroll 8
    for (int h = 0; h < height; ++h)
#pragma GCC unroll 8
      for (int v = 0; v < width; ++v) {
        Out* to_store = y + h * out_row + v * kLanes;
        part ? store_part(to_store, s[h][v], count) : store(to_store, s[h][v]);
      }
  }
}

/// All of `height` rows, in blocks of eight vectors where the columns allow it.
template <int height, class In, class Out>
inline void combine_rows(const Mix& mix, const In* const* in, int64_t in_row, Out* const* out,
                         int64_t out_row, int64_t row, int64_t cols, const float* const* bias, Store how) {
  constexpr int kWide = 8 / height;
  const int64_t from = row * in_row, to = row * out_row;
  int64_t q = 0;
  for (; q + kWide * kLanes <= cols; q += kWide * kLanes)
    combine_block<height, kWide, false>(mix, in, in_row, out, out_row, from, to, q, kLanes, bias, how);
  for (; kWide > 1 && q + kLanes <= cols; q += kLanes)
    combine_block<height, 1, false>(mix, in, in_row, out, out_row, from, to, q, kLanes, bias, how);
  if (q < cols)
    combine_block<height, 1, true>(mix, in, in_row, out, out_row, from, to, q, cols - q, bias, how);
}

/// The number of inputs where every output mixes the same ones, else 0.
inline int32_t common_inputs(const Mix& mix) {
  const int32_t inputs = mix.outputs > 0 ? mix.begin[1] : 0;
  for (int32_t o = 1; o < mix.outputs; ++o) {
    if (mix.begin[o + 1] - mix.begin[o] != inputs) return 0;
    for (int32_t e = 0; e < inputs; ++e)
      if (mix.source[mix.begin[o] + e] != mix.source[e]) return 0;
  }
  return inputs;
}

/// `width` vectors of `height` outputs with the same inputs: each of these is loaded once for all of them.
template <int height, int width, bool part, class In, class Out>
inline void dense_block(const Mix& mix, int32_t inputs, int32_t o, const In* const* in, int64_t from,
                        Out* const* out, int64_t to, int64_t q, int64_t count, const float* const* bias,
                        Store how) {
  const auto get = [count](auto* p) { return part ? load_part(p, count) : load(p); };
  const float* const c = mix.coefficient + mix.begin[o];
  Vec s[height][width];
#pragma GCC unroll 8
  for (int t = 0; t < height; ++t)
#pragma GCC unroll 2
    for (int v = 0; v < width; ++v) {
      s[t][v] = bias ? get(bias[o + t] + q + v * kLanes) : Vec{};
      if (how == Store::add) s[t][v] += get(out[o + t] + to + q + v * kLanes);
    }
  for (int32_t e = 0; e < inputs; ++e) {
    const In* const p = in[mix.source[e]] + from + q;
    Vec x[width];
#pragma GCC unroll 2
    for (int v = 0; v < width; ++v) x[v] = get(p + v * kLanes);
#pragma GCC unroll 8
    for (int t = 0; t < height; ++t) {
      const float factor = c[t * inputs + e];
#pragma GCC unroll 2
      for (int v = 0; v < width; ++v) s[t][v] += factor * x[v];
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < height; ++t)
#pragma GCC unroll 2
    for (int v = 0; v < width; ++v) {
      Out* const y = out[o + t] + to + q + v * kLanes;
      part ? store_part(y, s[t][v], count) : store(y, s[t][v]);
    }
}

template <int width, bool part, class In, class Out>
inline void dense_outputs(const Mix& mix, int32_t inputs, const In* const* in, int64_t from, Out* const* out,
                          int64_t to, int64_t q, int64_t count, const float* const* bias, Store how) {
  constexpr int kHeight = kLanes == 16 ? 8 : 4;  // sums fill half of the registers
  int32_t o = 0;
  for (; o + kHeight <= mix.outputs; o += kHeight)
    dense_block<kHeight, width, part>(mix, inputs, o, in, from, out, to, q, count, bias, how);
  for (; o + 4 <= mix.outputs; o += 4)
    dense_block<4, width, part>(mix, inputs, o, in, from, out, to, q, count, bias, how);
  for (; o < mix.outputs; ++o)
    dense_block<1, width, part>(mix, inputs, o, in, from, out, to, q, count, bias, how);
}

template <class In, class Out>
void combine_dense(const Mix& mix, int32_t inputs, const In* const* in, int64_t in_row, Out* const* out,
                   int64_t out_row, int64_t rows, int64_t cols, const float* const* bias, Store how) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t from = row * in_row, to = row * out_row;
    int64_t q = 0;
    for (; q + 2 * kLanes <= cols; q += 2 * kLanes)
      dense_outputs<2, false>(mix, inputs, in, from, out, to, q, kLanes, bias, how);
    for (; q + kLanes <= cols; q += kLanes)
      dense_outputs<1, false>(mix, inputs, in, from, out, to, q, kLanes, bias, how);
    if (q < cols) dense_outputs<1, true>(mix, inputs, in, from, out, to, q, cols - q, bias, how);
  }
}

template <class In, class Out>
void combine(const Mix& mix, const In* const* in, int64_t in_row, Out* const* out, int64_t out_row,
             int64_t rows, int64_t cols, const float* const* bias, Store how) {
  constexpr int32_t kFew = 7;  // inputs that may as well be loaded again for each output
  if (const int32_t inputs = common_inputs(mix); inputs > kFew && mix.outputs >= 8)
    return combine_dense(mix, inputs, in, in_row, out, out_row, rows, cols, bias, how);
  // Eight sums at a time, of as many rows as that takes: reading the mixture costs as much as two of them.
  int64_t row = 0;
  if (cols < 2 * kLanes)
    for (; row + 8 <= rows; row += 8) combine_rows<8>(mix, in, in_row, out, out_row, row, cols, bias, how);
  if (cols < 4 * kLanes)
    for (; row + 4 <= rows; row += 4) combine_rows<4>(mix, in, in_row, out, out_row, row, cols, bias, how);
  for (; row + 2 <= rows; row += 2) combine_rows<2>(mix, in, in_row, out, out_row, row, cols, bias, how);
  for (; row < rows; ++row) combine_rows<1>(mix, in, in_row, out, out_row, row, cols, bias, how);
}

/// One tile of every input is transposed into the first level cache, then mixed from there.
template <class In, class Out>
void transpose(const Mix& mix, int32_t inputs, const In* const* in, int64_t in_row, Out* const* out,
               int64_t out_row, int64_t rows, int64_t cols) {
  Vec tile[kMaxInputs][kLanes];
  for (int64_t row = 0; row < rows; row += kLanes) {
    const int64_t height = rows - row < kLanes ? rows - row : kLanes;
    for (int64_t q = 0; q < cols; q += kLanes) {
      const int64_t width = cols - q < kLanes ? cols - q : kLanes;
      const bool part = height < kLanes || width < kLanes;
      for (int32_t c = 0; c < inputs; ++c) {
        const In* x = in[c] + row * in_row + q;
        Vec v[kLanes];
        if (part)
          for (int i = 0; i < kLanes; ++i) v[i] = i < height ? load_part(x + i * in_row, width) : Vec{};
        else
#pragma GCC unroll 16
          for (int i = 0; i < kLanes; ++i) v[i] = load(x + i * in_row);
        transpose_tile(v);
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) tile[c][i] = v[i];
      }
      for (int32_t o = 0; o < mix.outputs; ++o) {
        Vec v[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) v[i] = Vec{};
        for (int32_t e = mix.begin[o]; e < mix.begin[o + 1]; ++e) {
          const Vec* x = tile[mix.source[e]];
          const float c = mix.coefficient[e];
#pragma GCC unroll 16
          for (int i = 0; i < kLanes; ++i) v[i] += c * x[i];
        }
        Out* y = out[o] + q * out_row + row;
        if (part)
          for (int64_t i = 0; i < width; ++i) store_part(y + i * out_row, v[i], height);
        else
#pragma GCC unroll 16
          for (int i = 0; i < kLanes; ++i) store(y + i * out_row, v[i]);
      }
    }
  }
}

void multiply(const Bilinear& sums, const float* const* a, int64_t a_row, const float* const* b,
              int64_t b_row, float* const* out, int64_t out_row, int64_t rows, int64_t cols, Store how) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t q = 0; q < cols; q += kLanes) {
      const int64_t count = cols - q;
      const auto get = [count](const float* p) { return count < kLanes ? load_part(p, count) : load(p); };
      for (int32_t o = 0; o < sums.outputs; ++o) {
        float* const y = out[o] + row * out_row + q;
        Vec total = how == Store::add ? get(y) : Vec{};
        for (int32_t e = sums.begin[o]; e < sums.begin[o + 1]; ++e)
          total += sums.coefficient[e] * get(a[sums.left[e]] + row * a_row + q) *
                   get(b[sums.right[e]] + row * b_row + q);
        count < kLanes ? store_part(y, total, count) : store(y, total);
      }
    }
}

}  // namespace

}  // namespace quatrain::kernels::cpu
