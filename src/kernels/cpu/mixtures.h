#pragma once

// Linear mixtures of matrices, as they lie and transposed, for loops.h alone.

#include "kernels/cpu/mixture_call.h"
#include "kernels/cpu/pairs.h"

namespace quatrain::kernels::cpu {

namespace {

/// The first inputs of a group, so many as are read without a loop, and its outputs, at the first value of a
/// row.
template <int count, int fixed, class In, class Out>
struct Operands {
  const In* in[fixed > 0 ? fixed : 1];
  Out* out[count];
  const In* own[count];  ///< where each has one further input
  float factor[count];   ///< of it
};

/// height x width vectors of the `count` outputs of a group at column q; the last one of a row may have
/// `lanes` lanes only. Inputs that they share are loaded once. The sums stay in registers, if GCC sees one
/// loop over the vectors, not two.
template <int count, int fixed, int height, int width, bool part, bool fresh, class In, class Out>
[[gnu::always_inline]] inline void combine_tile(const Mixed<In, Out>& call, const MixGroup& group,
                                                const Operands<count, fixed, In, Out>& at, int64_t from,
                                                int64_t q, int64_t lanes) {
  const auto get = [lanes](auto* p) { return part ? load_part(p, lanes) : load(p); };
  constexpr int kVectors = height * width;
  const int64_t in_row = call.in_row, out_row = call.out_row;
  const auto in_at = [in_row](int i) { return i / width * in_row + i % width * kLanes; };
  const auto out_at = [out_row](int i) { return i / width * out_row + i % width * kLanes; };
  const Mix& mix = call.mix;
  Vec s[count][kVectors] = {};
  if constexpr (!fresh)
#pragma GCC unroll 4
    for (int t = 0; t < count; ++t)
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) {
        if (call.bias) s[t][i] = get(call.bias[group.first + t] + q + i % width * kLanes);
        if (call.how == Store::add) s[t][i] += get(at.out[t] + q + out_at(i));
      }
  const float* const shared = mix.shared + group.coefficients;
  const auto add_shared = [&](const In* p, const float* factors) __attribute__((always_inline)) {
    Vec x[kVectors];
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) x[i] = get(p + in_at(i));
#pragma GCC unroll 4
    for (int t = 0; t < count; ++t)
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) s[t][i] += factors[t] * x[i];
  };
#pragma GCC unroll 4
  for (int e = 0; e < fixed; ++e) add_shared(at.in[e] + q, shared + e * count);
  const int32_t* const source = mix.source + mix.begin[group.first];
  for (int32_t e = fixed; e < group.common; ++e)
    add_shared(call.in[source[e]] + from + q, shared + e * count);
#pragma GCC unroll 4
  for (int t = 0; t < count; ++t) {
    const int32_t o = group.first + t;
    if (group.more == More::one)
#pragma GCC unroll 8
      for (int i = 0; i < kVectors; ++i) s[t][i] += at.factor[t] * get(at.own[t] + q + in_at(i));
    else if (group.more == More::any)
      for (int32_t e = mix.begin[o] + group.common; e < mix.begin[o + 1]; ++e) {
        const In* const p = call.in[mix.source[e]] + from + q;
        const float factor = mix.coefficient[e];
#pragma GCC unroll 8
        for (int i = 0; i < kVectors; ++i) s[t][i] += factor * get(p + in_at(i));
      }
    Out* const y = at.out[t] + q;
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i)
      part ? store_part(y + out_at(i), s[t][i], lanes) : store(y + out_at(i), s[t][i]);
  }
}

/// All columns of `height` rows, in tiles of `vectors` vectors where they allow it.
template <int count, int fixed, int height, int vectors, bool fresh, class In, class Out>
inline void combine_rows(const Mixed<In, Out>& call, const MixGroup& group, int64_t row, int64_t cols) {
  constexpr int kWide = vectors / height;
  const int64_t from = row * call.in_row, to = row * call.out_row;
  Operands<count, fixed, In, Out> at;
  const int32_t* const source = call.mix.source + call.mix.begin[group.first];
#pragma GCC unroll 4
  for (int e = 0; e < fixed; ++e) at.in[e] = call.in[source[e]] + from;
#pragma GCC unroll 4
  for (int t = 0; t < count; ++t) {
    const int32_t o = group.first + t, e = call.mix.begin[o] + group.common;
    at.out[t] = call.out[o] + to;
    const bool own = group.more == More::one;
    at.own[t] = own ? call.in[call.mix.source[e]] + from : nullptr;
    at.factor[t] = own ? call.mix.coefficient[e] : 0;
  }
  int64_t q = 0;
  const bool in_ahead = height == 1 && call.ahead == Ahead::in,
             out_ahead = height == 1 && call.ahead == Ahead::out;
  for (; q + kWide * kLanes <= cols; q += kWide * kLanes) {
    if (in_ahead)
#pragma GCC unroll 4
      for (int e = 0; e < fixed; ++e) ask_for<kWide>(at.in[e] + q + kAhead * call.in_row);
    if (out_ahead)
#pragma GCC unroll 4
      for (int t = 0; t < count; ++t) ask_for<kWide>(at.out[t] + q + kAhead * call.out_row);
    combine_tile<count, fixed, height, kWide, false, fresh>(call, group, at, from, q, kLanes);
  }
  for (; kWide > 1 && q + kLanes <= cols; q += kLanes)
    combine_tile<count, fixed, height, 1, false, fresh>(call, group, at, from, q, kLanes);
  if (q < cols) combine_tile<count, fixed, height, 1, true, fresh>(call, group, at, from, q, cols - q);
}

/// Rows from `row` to `end`.
template <int count, int fixed, bool fresh, class In, class Out>
void combine_group(const Mixed<In, Out>& call, const MixGroup& group, int64_t row, int64_t end,
                   int64_t cols) {
  // Sums fill half of the registers, of as many rows as that takes.
  constexpr int kSums = kLanes == 16 ? 16 : 8, kVectors = kSums / count < 8 ? kSums / count : 8;
  if constexpr (kVectors == 8)
    if (cols < 2 * kLanes)
      for (; row + 8 <= end; row += 8) combine_rows<count, fixed, 8, 8, fresh>(call, group, row, cols);
  if constexpr (kVectors >= 4)
    if (cols < kVectors / 2 * kLanes)
      for (; row + 4 <= end; row += 4) combine_rows<count, fixed, 4, kVectors, fresh>(call, group, row, cols);
  if (cols % (kVectors * kLanes))
    for (; row + 2 <= end; row += 2) combine_rows<count, fixed, 2, kVectors, fresh>(call, group, row, cols);
  for (; row < end; ++row) combine_rows<count, fixed, 1, kVectors, fresh>(call, group, row, cols);
}

/// A mixture that is an input as it is. Sums start at +0, so that -0 becomes +0.
template <class In, class Out>
void copy(const Mixed<In, Out>& call, int32_t input, int32_t output, int64_t row, int64_t end, int64_t cols) {
  for (; row < end; ++row) {
    const In* const x = call.in[input] + row * call.in_row;
    Out* const y = call.out[output] + row * call.out_row;
    int64_t q = 0;
    for (; q + 4 * kLanes <= cols; q += 4 * kLanes)
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) store(y + q + v * kLanes, Vec{} + load(x + q + v * kLanes));
    for (; q + kLanes <= cols; q += kLanes) store(y + q, Vec{} + load(x + q));
    if (q < cols) store_part(y + q, Vec{} + load_part(x + q, cols - q), cols - q);
  }
}

template <bool fresh, class In, class Out>
void combine_groups(const Mixed<In, Out>& call, int64_t rows, int64_t cols) {
  // Rows whose inputs stay in the first level cache while all groups pass over them.
  constexpr int64_t kValues = 1024;
  const int64_t height = rows * cols <= kValues ? rows : cols < kValues / 4 ? kValues / cols : 4;
  const Mix& mix = call.mix;
  for (int64_t row = 0; row < rows; row += height) {
    const int64_t end = row + height < rows ? row + height : rows;
    for (int32_t g = 0; g < mix.groups; ++g) {
      const MixGroup& group = mix.group[g];
      const int32_t o = group.first, e = mix.begin[o];
      if (group.paired)
        combine_pairs<fresh>(call, group, row, end, cols);
      else if (group.count == 4 && group.common >= 4)
        combine_group<4, 4, fresh>(call, group, row, end, cols);
      else if (group.count == 4)
        combine_group<4, 2, fresh>(call, group, row, end, cols);
      else if (group.count == 2)
        combine_group<2, 2, fresh>(call, group, row, end, cols);
      else if (fresh && cols >= 4 * kLanes && group.common == 1 && mix.coefficient[e] == 1)
        copy(call, mix.source[e], o, row, end, cols);
      else
        combine_group<1, 0, fresh>(call, group, row, end, cols);
    }
  }
}

template <class In, class Out>
void combine(const Mix& mix, const In* const* in, int64_t in_row, Out* const* out, int64_t out_row,
             int64_t rows, int64_t cols, const float* const* bias, Store how) {
  const Mixed<In, Out> call{mix, in, in_row, out, out_row, bias, how, ahead_of(in_row, out_row, rows, cols)};
  call.fresh() ? combine_groups<true>(call, rows, cols) : combine_groups<false>(call, rows, cols);
}

/// One tile of every input is transposed into the first level cache, then mixed from there.
template <class In, class Out>
void transpose(const Mix& mix, int32_t inputs, const In* const* in, int64_t in_row, Out* const* out,
               int64_t out_row, int64_t rows, int64_t cols) {
  Vec tile[kMaxInputs][kLanes], of_pairs[4][kLanes];
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
      for (int32_t o = 0, g = 0; o < mix.outputs; ++o) {
        if (g + 1 < mix.groups && mix.group[g + 1].first == o) ++g;
        const bool paired = mix.groups > 0 && mix.group[g].paired;
        const int32_t first = paired ? mix.group[g].first : o;
        if (paired && o == first) make_pairs(mix, mix.group[g], tile, of_pairs);
        Vec v[kLanes];
#pragma GCC unroll 16
        for (int i = 0; i < kLanes; ++i) v[i] = paired ? of_pairs[o - first][i] : Vec{};
        for (int32_t e = mix.begin[o] + (paired ? 4 : 0); e < mix.begin[o + 1]; ++e) {
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

/// `vectors` vectors of every output, side by side; a single one may have `lanes` lanes only. from_a, from_b
/// and to: where they begin in each input and output. Rows of pointers are read once for all of them.
template <int vectors, bool part>
[[gnu::always_inline]] inline void multiply_tile(const Bilinear& sums, const float* const* a, int64_t from_a,
                                                 const float* const* b, int64_t from_b, float* const* out,
                                                 int64_t to, int64_t lanes, Store how) {
  const auto get = [lanes](const float* p) { return part ? load_part(p, lanes) : load(p); };
  for (int32_t o = 0; o < sums.outputs; ++o) {
    float* const y = out[o] + to;
    Vec total[vectors] = {};
    if (how == Store::add)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) total[v] = get(y + v * kLanes);
    for (int32_t e = sums.begin[o]; e < sums.begin[o + 1]; ++e) {
      const float *const left = a[sums.left[e]] + from_a, *const right = b[sums.right[e]] + from_b;
      const float factor = sums.coefficient[e];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) total[v] += factor * get(left + v * kLanes) * get(right + v * kLanes);
    }
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v)
      part ? store_part(y + v * kLanes, total[v], lanes) : store(y + v * kLanes, total[v]);
  }
}

void multiply(const Bilinear& sums, const float* const* a, int64_t a_row, const float* const* b,
              int64_t b_row, float* const* out, int64_t out_row, int64_t rows, int64_t cols, Store how) {
  constexpr int kWide = 4;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t q = 0;
    const auto tile = [&]<int vectors, bool part>() {
      multiply_tile<vectors, part>(sums, a, row * a_row + q, b, row * b_row + q, out, row * out_row + q,
                                   cols - q, how);
    };
    for (; q + kWide * kLanes <= cols; q += kWide * kLanes) tile.template operator()<kWide, false>();
    for (; q + kLanes <= cols; q += kLanes) tile.template operator()<1, false>();
    if (q < cols) tile.template operator()<1, true>();
  }
}

}  // namespace

}  // namespace quatrain::kernels::cpu
